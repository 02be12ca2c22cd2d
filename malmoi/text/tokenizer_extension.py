"""Add pieces to an existing tokenizer. Ids that exist never change and new ones follow the highest, so a model's
embedding table only grows.

The text's words are cut by the tokenizer as it stands. First, characters it does not know become pieces; then pairs of
neighbouring pieces are joined, the most frequent first. Joining goes in rounds: a round takes the pairs that nearly
are the most frequent and do not overlap, then the words are cut anew by the grown tokenizer itself. So each piece is
chosen for how the tokenizer really cuts, whether by merges (BPE), by the longest match (WordPiece) or by the best sum
of scores (Unigram), and each is reachable.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer as Backend

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer

_MIN_FREQUENCY = 2
# A character is worth a piece where it occurs once in so many words.
_CHARACTER_WORDS = 10_000
# A round takes pairs that are at least this share as frequent as its most frequent one.
_NEARLY = 0.75
# More distinct words than this are cut down to those that occur more than once.
_MANY_WORDS = 300_000
# How much better than its parts a new Unigram piece scores, so that it is preferred to them.
_ADVANTAGE = 0.1

Cut = list[tuple[str, int]]  # pieces of a word with their ids


def extend_tokenizer(tokenizer: Tokenizer, texts: Iterable[str], *, add: int, words: Iterable[str] = ()) -> Tokenizer:
    """A tokenizer with `words` as whole pieces and up to `add` pieces more, learned from the text."""
    if add < 0:
        raise MalmoiError(f"--add {add} must not be negative.")
    vocabulary = _Vocabulary(tokenizer)
    _add_words(vocabulary, words)
    if add:
        counts = _count_words(vocabulary, texts)
        end = vocabulary.next_id + add
        if tokenizer.kind == "wordlevel":
            _add_frequent_words(vocabulary, counts, end)
        else:
            _add_characters(vocabulary, counts, vocabulary.next_id + add // 2)
            _add_pairs(vocabulary, counts, end)
    return Tokenizer(vocabulary.backend(), dict(tokenizer.config))


class _Vocabulary:
    """A tokenizer's description, open for new pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.kind = tokenizer.kind
        self.description: dict[str, Any] = json.loads(tokenizer.backend.to_str())
        self.model: dict[str, Any] = self.description["model"]
        self.prefix = self.model.get("continuing_subword_prefix") or ""
        self.next_id = tokenizer.vocab_size
        self.unknown_id = tokenizer.unk_id
        self.scores: dict[str, float] = {}
        if self.kind == "unigram":
            self.scores = dict(self.model["vocab"])
            self.unknown_id = self.model["unk_id"]
        self.pieces = set(self.model["vocab"]) if self.kind != "unigram" else set(self.scores)
        self.floor = min(self.scores.values(), default=0.0)
        # Added tokens may have ids after the model's; put into the model they keep them when it grows.
        for token in sorted(self.description["added_tokens"], key=lambda token: int(token["id"])):
            if token["content"] not in self.pieces:
                self._insert(token["content"], token["id"], 0.0)
        self.cutter = self.backend()

    def backend(self) -> Backend:
        return Backend.from_str(json.dumps(self.description))

    def renew(self) -> None:
        """Let the pieces added so far take part in cutting words."""
        self.cutter = self.backend()

    def add(self, piece: str, parts: tuple[str, str] | None, score: float = 0.0) -> bool:
        """Append a piece; for BPE made of two `parts`. False where it is there already."""
        if piece in self.pieces:
            return False
        self._insert(piece, self.next_id, score)
        self.next_id += 1
        if self.kind == "bpe" and parts is not None:
            self.model["merges"].append(list(parts))
        return True

    def join(self, left: str, right: str) -> str:
        return left + (right.removeprefix(self.prefix) if self.prefix else right)

    def words(self, text: str) -> Iterator[str]:
        normalizer, splitter = self.cutter.normalizer, self.cutter.pre_tokenizer
        if normalizer is not None:
            text = normalizer.normalize_str(text)
        if splitter is None:
            return iter(re.findall(r"▁*[^▁\s]+", text))
        return (word for word, _ in splitter.pre_tokenize_str(text))

    def cut(self, words: Iterable[str]) -> dict[str, Cut]:
        model = self.cutter.model
        return {word: [(token.value, token.id) for token in model.tokenize(word)] for word in words}

    def _insert(self, piece: str, id: int, score: float) -> None:
        self.pieces.add(piece)
        if self.kind != "unigram":
            self.model["vocab"][piece] = id
            return
        if id != len(self.model["vocab"]):
            raise MalmoiError(f"This tokenizer's ids have a gap before {id} ({piece!r}), so it cannot be extended.")
        self.model["vocab"].append([piece, score])
        self.scores[piece] = score


def _count_words(vocabulary: _Vocabulary, texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(vocabulary.words(text))
    if not counts:
        raise MalmoiError("There is no text to learn pieces from; give a file that is not empty.")
    if len(counts) > _MANY_WORDS:
        counts = Counter({word: count for word, count in counts.items() if count > 1})
    return counts


def _add_frequent_words(vocabulary: _Vocabulary, counts: Counter[str], end: int) -> None:
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        if vocabulary.next_id == end or counts[word] < _MIN_FREQUENCY:
            return
        vocabulary.add(word, None)


def _add_characters(vocabulary: _Vocabulary, counts: Counter[str], end: int) -> None:
    """Characters that leave a word unknown become pieces; BPE over bytes has no such characters."""
    missing: Counter[str] = Counter()
    for word, cut in vocabulary.cut(counts).items():
        if any(id == vocabulary.unknown_id for _, id in cut):
            for position, character in enumerate(word):
                piece = vocabulary.prefix + character if position else character
                if piece not in vocabulary.pieces:
                    missing[piece] += counts[word]
    least = max(_MIN_FREQUENCY, counts.total() / _CHARACTER_WORDS)
    for piece in sorted(missing, key=lambda piece: (-missing[piece], piece)):
        if vocabulary.next_id >= end or missing[piece] < least:
            break
        vocabulary.add(piece, None, vocabulary.floor)
    vocabulary.renew()


def _add_pairs(vocabulary: _Vocabulary, counts: Counter[str], end: int) -> None:
    cuts = vocabulary.cut(counts)
    while vocabulary.next_id < end:
        # A word that is one piece has nothing left to join.
        cuts = {word: cut for word, cut in cuts.items() if len(cut) > 1}
        pairs: Counter[tuple[str, str]] = Counter()
        for word, cut in cuts.items():
            count = counts[word]
            for (left, left_id), (right, right_id) in pairwise(cut):
                if left_id != vocabulary.unknown_id and right_id != vocabulary.unknown_id:
                    pairs[left, right] += count
        before = vocabulary.next_id
        total = sum(len(cut) * counts[word] for word, cut in cuts.items())
        lefts: set[str] = set()
        rights: set[str] = set()
        least = 0.0
        for (left, right), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0])):
            if vocabulary.next_id == end or count < max(least, _MIN_FREQUENCY):
                break
            piece = vocabulary.join(left, right)
            # A pair that shares a piece with a chosen one has lost part of its count.
            if piece in vocabulary.pieces or left in rights or right in lefts:
                continue
            score = 0.0
            if vocabulary.kind == "unigram":
                parts = vocabulary.scores[left] + vocabulary.scores[right]
                score = max(parts + _ADVANTAGE, math.log(count / total), vocabulary.floor)
            vocabulary.add(piece, (left, right), score)
            lefts.add(left)
            rights.add(right)
            least = least or count * _NEARLY
        if vocabulary.next_id == before:
            return
        vocabulary.renew()
        cuts = vocabulary.cut(cuts)


def _add_words(vocabulary: _Vocabulary, words: Iterable[str]) -> None:
    forms: list[str] = []
    for word in words:
        # Where a piece holds the space before its word, the word has two forms.
        for text in (word, f" {word}"):
            parts = list(vocabulary.words(text))
            if len(parts) != 1:
                raise MalmoiError(
                    f"The word {word!r} cannot become one piece: this tokenizer splits it into {len(parts)} words; "
                    "give words without spaces and punctuation."
                )
            forms.extend(parts)
    if vocabulary.kind == "bpe":
        _merge_into_words(vocabulary, forms)
        return
    for form, cut in vocabulary.cut(dict.fromkeys(forms)).items():
        score = sum(vocabulary.scores.get(piece, vocabulary.floor) for piece, _ in cut)
        vocabulary.add(form, None, max(score + _ADVANTAGE, vocabulary.floor))
    vocabulary.renew()


def _merge_into_words(vocabulary: _Vocabulary, forms: list[str]) -> None:
    """Add merges until each form is one piece. A word's merges can get in the way of another word that contains it, so
    the forms are cut anew, by the merges there are by then, until nothing is left to do."""
    pending = dict.fromkeys(forms)
    while pending := {form: cut for form, cut in vocabulary.cut(pending).items() if len(cut) > 1}:
        shortest = min(map(len, pending))
        for form, cut in pending.items():
            # Longer words wait: they may contain this round's.
            if len(form) > shortest:
                continue
            joined = cut[0][0]
            for piece, _ in cut[1:]:
                merge = (joined, piece)
                joined = vocabulary.join(*merge)
                vocabulary.add(joined, None)
                if list(merge) not in vocabulary.model["merges"]:
                    vocabulary.model["merges"].append(list(merge))
        vocabulary.renew()
