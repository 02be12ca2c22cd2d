"""Sentences → token ids in bulk: each distinct word is encoded once, the rest is looking up and copying.

Tokenizers cut text at spaces before anything else, so a sentence's ids are those of its space-separated pieces laid end
to end. `find_spacing` says for which tokenizers that is exactly true; for any other, whole sentences go through the
tokenizer. A test holds both ways against each other on text of every awkward kind.
"""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from malmoi.text.tokenizer import Tokenizer

# When the words remembered outgrow this, they are forgotten and learned anew: memory stays bounded on any corpus.
_WORDS_REMEMBERED = 300_000
_TOKENS_REMEMBERED = 4_000_000

# The blocks of CJK ideographs that BERT sets apart by spaces: each of these characters is a word of its own.
_IDEOGRAPH = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]"
)

Spacing = Literal["separates", "belongs to the next word", "unknown"]


@dataclass(frozen=True)
class EncodedSentences:
    """Sentences as ids laid end to end."""

    ids: NDArray[np.uint32]  # (N,)
    word_starts: NDArray[np.bool_]  # (N,)
    lengths: NDArray[np.int64]  # tokens of each sentence; 0 where nothing was left of it


class SentenceEncoder:
    """Encodes lists of sentences, and remembers the words it has seen.

    Special tokens that stand in the text itself are read as ordinary text: a corpus that talks about "[SEP]" must not
    inject separators.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._backend = Backend.from_str(tokenizer.backend.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        self._spacing = find_spacing(json.loads(self._backend.to_str()))
        self._forget()

    def _forget(self) -> None:
        self._texts: list[str] = []  # every text remembered, in the order of their numbers
        self._opening = _Numbers(self._texts, "")  # words that open a sentence, and sentences taken whole
        prefix = " " if self._spacing == "belongs to the next word" else ""
        self._following = _Numbers(self._texts, prefix) if prefix else self._opening
        self._ids = array("I")
        self._starts = array("b")
        self._bounds = array("q", [0])  # text number n has the tokens bounds[n] … bounds[n + 1]

    def encode(self, sentences: list[str]) -> EncodedSentences:
        """The ids of all sentences; a sentence holds no line break."""
        if len(self._texts) > _WORDS_REMEMBERED or len(self._ids) > _TOKENS_REMEMBERED:
            self._forget()
        pieces = [self._split(sentence) for sentence in sentences]
        opening, following = self._opening.__getitem__, self._following.__getitem__
        if self._following is self._opening:
            numbers = [number for words in pieces for number in map(opening, words)]
        else:
            numbers = list(
                chain.from_iterable(
                    chain((opening(words[0]),), map(following, islice(words, 1, None))) for words in pieces
                )
            )
        self._learn()
        return self._gather(
            np.array(numbers, dtype=np.int64), np.array([len(words) for words in pieces], dtype=np.int64)
        )

    def _split(self, sentence: str) -> list[str]:
        if self._spacing == "separates":
            return sentence.split(" ")
        # Where a space belongs to the following word, a second space in a row becomes a word of its own: such a
        # sentence is taken whole.
        if self._spacing == "unknown" or "  " in sentence or sentence[:1] == " " or sentence[-1:] == " ":
            return [sentence]
        return sentence.split(" ")

    def _learn(self) -> None:
        """Encode the texts that were met for the first time."""
        new = self._texts[len(self._bounds) - 1 :]
        for text, encoding in zip(new, self._backend.encode_batch(new, add_special_tokens=False), strict=True):
            self._ids.extend(encoding.ids)
            self._starts.extend(find_word_starts(text, encoding))
            self._bounds.append(len(self._ids))

    def _gather(self, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> EncodedSentences:
        """Lay the tokens of the numbered texts end to end; `counts` says how many texts make a sentence."""
        bounds = np.frombuffer(self._bounds, dtype=np.int64)
        begins = bounds[numbers]
        lengths = bounds[numbers + 1] - begins
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        places = np.repeat(begins - (ends - lengths), lengths) + np.arange(total)
        sums = np.concatenate(([0], ends))
        last = np.cumsum(counts)
        return EncodedSentences(
            ids=np.frombuffer(self._ids, dtype=np.uint32)[places],
            word_starts=np.frombuffer(self._starts, dtype=np.bool_)[places],
            lengths=sums[last] - sums[last - counts],
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


def find_word_starts(text: str, encoding: Encoding) -> list[bool]:
    """Which tokens begin a word: where the tokenizer's word number changes, and at ideographs, which scripts without
    spaces put in a row. Tokens that share a character (byte-level pieces) always stay together."""
    starts: list[bool] = []
    word_before, end_before = None, 0
    for word, (begin, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        start = word != word_before or not starts
        if not start and begin >= end_before:
            start = bool(_IDEOGRAPH.match(text, begin) or _IDEOGRAPH.match(text, end_before - 1))
        starts.append(start)
        word_before, end_before = word, end
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


def _flatten(part: dict[str, Any] | None, inner: str) -> list[dict[str, Any]]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [leaf for child in part[inner] for leaf in _flatten(child, inner)]
    return [part]
