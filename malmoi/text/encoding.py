"""Sentences → token ids in bulk: each distinct word is encoded once, the rest is looking up and copying.

Tokenizers cut text at spaces before anything else, so a sentence's ids are those of its space-separated words laid end
to end. BERT's also sets every mark of punctuation apart, so words that are new are put together from parts in the same
way. `find_spacing` says for which tokenizers that is exactly true; for any other, whole sentences go through the
tokenizer. A test holds both ways against each other on text of every awkward kind.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from malmoi.text.panics import catch_panics
from malmoi.text.tokenizer import Tokenizer

# When the words remembered outgrow this, they are forgotten and learned anew: memory stays bounded on any corpus.
_WORDS_REMEMBERED = 300_000
_TOKENS_REMEMBERED = 4_000_000

# New texts go to the tokenizer in rows of so many: a call costs as much as several words.
_TEXTS_IN_A_ROW = 100

# What BERT's pre-tokenizer sets apart, as far as ASCII goes.
_PARTS = re.compile(r"[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~]+")
# The only mark that composes with punctuation: "=" and it make "≠".
_OVERLAY = "\u0338"

# The blocks of CJK ideographs that BERT sets apart by spaces: each of these characters is a word of its own.
_IDEOGRAPH = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)

Spacing = Literal["separates", "belongs to the next word", "unknown"]


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as ids laid end to end."""

    ids: NDArray[np.uint32]  # (N,)
    word_starts: NDArray[np.bool_]  # (N,)
    lengths: NDArray[np.int64]  # tokens of each text; 0 where nothing was left of it


class SentenceEncoder:
    """Encodes lists of sentences, and remembers the words it has seen.

    Special tokens that stand in the text itself are read as ordinary text: a corpus that talks about "[SEP]" must not
    inject separators.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        description = json.loads(tokenizer.backend.to_str())
        # A post-processor adds special tokens and trims offsets; neither is wanted here.
        description.update(post_processor=None, truncation=None, padding=None)
        self._backend = Backend.from_str(json.dumps(description))
        self._backend.encode_special_tokens = True
        self._spacing = find_spacing(description)
        self._has_parts = self._spacing == "separates" and has_parts(description)
        self._forget_words()
        self._forget_parts()

    def _forget_parts(self) -> None:
        self._parts = _Memory()
        self._part_numbers = _Numbers(self._parts.texts, "")

    def _forget_words(self) -> None:
        self._words = _Memory()
        self._opening = _Numbers(self._words.texts, "")  # words that open a sentence, and sentences taken whole
        prefix = " " if self._spacing == "belongs to the next word" else ""
        self._following = _Numbers(self._words.texts, prefix) if prefix else self._opening

    def encode(self, sentences: list[str]) -> EncodedTexts:
        """The ids of all sentences; a sentence holds no line break."""
        if self._words.is_full:
            self._forget_words()
        if self._parts.is_full:
            self._forget_parts()
        split = [self._split(sentence) for sentence in sentences]
        opening, following = self._opening.__getitem__, self._following.__getitem__
        if self._following is self._opening:
            numbers = list(map(opening, chain.from_iterable(split)))
        else:
            numbers = list(
                chain.from_iterable(
                    chain((opening(words[0]),), map(following, islice(words, 1, None))) for words in split
                )
            )
        self._learn_words()
        return self._words.join(numbers, split)

    def _split(self, sentence: str) -> list[str]:
        if self._spacing == "separates":
            return sentence.split(" ")
        # Where a space belongs to the following word, a second space in a row becomes a word of its own: such a
        # sentence is taken whole.
        if self._spacing == "unknown" or "  " in sentence or sentence[:1] == " " or sentence[-1:] == " ":
            return [sentence]
        return sentence.split(" ")

    def _learn_words(self) -> None:
        """Encode the words that were met for the first time, where possible from parts."""
        new = self._words.new_texts()
        if not new:
            return
        if not self._has_parts:
            self._words.learn(self._encode(new))
            return
        split = [[word] if _OVERLAY in word else _PARTS.findall(word) for word in new]
        numbers = list(map(self._part_numbers.__getitem__, chain.from_iterable(split)))
        self._parts.learn(self._encode(self._parts.new_texts()))
        self._words.learn(self._parts.join(numbers, split))

    @catch_panics()
    def _encode(self, texts: list[str]) -> EncodedTexts:
        """Texts through the tokenizer itself, several in a row."""
        rows = list(self._make_rows(texts))
        between = " " if self._spacing == "separates" else ""
        joined = [between.join(row) for row in rows]
        ids, starts, lengths = [np.empty(0, np.uint32)], [np.empty(0, np.bool_)], [np.empty(0, np.int64)]
        encodings = self._backend.encode_batch(joined, add_special_tokens=False)
        for row, text, encoding in zip(rows, joined, encodings, strict=True):
            begins = np.cumsum([0, *(len(member) + len(between) for member in row[:-1])])
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            member = np.searchsorted(begins, offsets[:, 0], side="right") - 1
            word_starts = find_word_starts(text, encoding)
            word_starts[1:] |= member[1:] != member[:-1]
            ids.append(np.array(encoding.ids, dtype=np.uint32))
            starts.append(word_starts)
            lengths.append(np.bincount(member, minlength=len(row)))
        return EncodedTexts(np.concatenate(ids), np.concatenate(starts), np.concatenate(lengths))

    def _make_rows(self, texts: list[str]) -> Iterator[list[str]]:
        """Rows of texts that the tokenizer takes apart again at the same places."""
        row: list[str] = []
        for text in texts:
            # A text without a space of its own can only open a row.
            alone = self._spacing == "unknown" or (self._spacing != "separates" and text[:1] != " ")
            if row and (alone or len(row) == _TEXTS_IN_A_ROW):
                yield row
                row = []
            row.append(text)
        if row:
            yield row


class _Memory:
    """Texts and their tokens: text number n has the tokens from bounds[n] to bounds[n + 1]."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._ids = array("I")
        self._starts = array("b")
        self._bounds = array("q", [0])

    @property
    def is_full(self) -> bool:
        return len(self.texts) > _WORDS_REMEMBERED or len(self._ids) > _TOKENS_REMEMBERED

    def new_texts(self) -> list[str]:
        """The texts whose tokens are not known yet."""
        return self.texts[len(self._bounds) - 1 :]

    def learn(self, encoded: EncodedTexts) -> None:
        """Take in the tokens of the new texts."""
        self._bounds.frombytes((len(self._ids) + np.cumsum(encoded.lengths)).tobytes())
        self._ids.frombytes(encoded.ids.tobytes())
        self._starts.frombytes(encoded.word_starts.tobytes())

    def join(self, numbers: list[int], groups: Iterable[list[str]]) -> EncodedTexts:
        """Lay the tokens of the numbered texts end to end; each group of texts makes one text of the result."""
        bounds = np.frombuffer(self._bounds, dtype=np.int64)
        number = np.array(numbers, dtype=np.int64)
        begins = bounds[number]
        lengths = bounds[number + 1] - begins
        ends = np.concatenate(([0], np.cumsum(lengths)))
        places = np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])
        last = np.cumsum([0, *map(len, groups)])
        return EncodedTexts(
            ids=np.frombuffer(self._ids, dtype=np.uint32)[places],
            word_starts=np.frombuffer(self._starts, dtype=np.bool_)[places],
            lengths=np.diff(ends[last]),
        )


class _Numbers(dict[str, int]):
    """Word → number of its text. A word met for the first time gets the next number and its text is noted."""

    def __init__(self, texts: list[str], prefix: str) -> None:
        self._texts = texts
        self._prefix = prefix

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self._texts)
        self._texts.append(self._prefix + word)
        return number


def find_word_starts(text: str, encoding: Encoding) -> NDArray[np.bool_]:
    """Which tokens begin a word: where the tokenizer's word number changes, and at ideographs, which scripts without
    spaces put in a row. Tokens that share a character (byte-level pieces) always stay together."""
    words = np.array(encoding.word_ids, dtype=np.int64)
    starts = np.ones(len(words), dtype=np.bool_)
    starts[1:] = words[1:] != words[:-1]
    ideographs = [match.start() for match in _IDEOGRAPH.finditer(text)]
    if ideographs and len(words):
        is_ideograph = np.zeros(len(text) + 1, dtype=np.bool_)
        is_ideograph[ideographs] = True
        begin, end = np.array(encoding.offsets, dtype=np.int64).T
        at_ideograph = is_ideograph[begin[1:]] | is_ideograph[np.maximum(end[:-1] - 1, 0)]
        starts[1:] |= (begin[1:] >= end[:-1]) & at_ideograph
    return starts


_CONTEXT_FREE_NORMALIZERS = {"BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"}


def find_spacing(description: dict[str, Any]) -> Spacing:
    """What a space means to the tokenizer that a `tokenizer.json` describes."""
    normalizer = description.get("normalizer")
    if any(part["type"] not in _CONTEXT_FREE_NORMALIZERS for part in _flatten(normalizer, "normalizers")):
        return "unknown"
    for added in description.get("added_tokens", []):
        # Specials are switched off here; other added tokens are found before the text is cut.
        if not added["special"] and (" " in added["content"] or added["lstrip"] or added["rstrip"]):
            return "unknown"
    match list(_flatten(description.get("pre_tokenizer"), "pretokenizers")):
        case [{"type": "BertPreTokenizer" | "Whitespace" | "WhitespaceSplit"}]:
            return "separates"
        # What XLM-R and malmoi's own Unigram do: white space goes, and each word gets its mark.
        case [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "prepend_scheme": "always", "split": True}]:
            return "separates"
        case [{"type": "ByteLevel", "use_regex": True}] | [{"type": "Metaspace", "split": True}]:
            return "belongs to the next word"
    return "unknown"


def has_parts(description: dict[str, Any]) -> bool:
    """Whether punctuation is set apart, whatever stands beside it."""
    ordinary = [added for added in description.get("added_tokens", []) if not added["special"]]
    return description["pre_tokenizer"]["type"] == "BertPreTokenizer" and not ordinary


def _flatten(part: dict[str, Any] | None, inner: str) -> list[dict[str, Any]]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [leaf for child in part[inner] for leaf in _flatten(child, inner)]
    return [part]
