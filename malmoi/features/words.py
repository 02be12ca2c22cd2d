"""Pieces → words: which pieces belong to which word, by where they stand in the text.

W words, P pieces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.errors import MalmoiError
from malmoi.features.options import Pieces

Span = tuple[int, int]

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class WordVectors:
    """The words of a text, where they stand in it, and a vector for each."""

    words: list[str]
    offsets: list[Span]
    vectors: NDArray[np.float32]  # (W, D)


def find_words(text: str) -> list[Span]:
    """What stands between white space: English words, Korean eojeol."""
    return [match.span() for match in _WORD.finditer(text)]


def locate_words(text: str, words: Sequence[str], place: str) -> list[Span]:
    """Where the user's words stand in their text; they must make up all of it but white space."""
    spans, end = [], 0
    for number, word in enumerate(words):
        if not isinstance(word, str) or not word or word.isspace():
            raise MalmoiError(f"{place}: word {number} is {word!r}; a word is a text that is not empty.")
        begin = text.find(word, end)
        if begin < 0 or text[end:begin].strip():
            found = text[end : end + 20].strip()
            raise MalmoiError(f"{place}: its word {number} is {word!r}, but the text goes on with {found!r}.")
        end = begin + len(word)
        spans.append((begin, end))
    if rest := text[end:].strip():
        raise MalmoiError(f"{place}: the words end before the text does; {rest[:20]!r} is left over.")
    return spans


def assign_pieces(spans: Sequence[Span], offsets: Sequence[Span]) -> NDArray[np.int64]:
    """The word of each piece, -1 for none. A piece belongs to the word its last character stands in: some tokenizers
    count the space before a word as a part of its first piece."""
    if not spans or not offsets:
        return np.full(len(offsets), -1, dtype=np.int64)
    begins, ends = np.array(spans, dtype=np.int64).T
    first, last = np.array(offsets, dtype=np.int64).T
    word = np.searchsorted(begins, last - 1, side="right") - 1
    belongs = (last > first) & (word >= 0) & (last - 1 < ends[np.maximum(word, 0)])
    return np.where(belongs, word, -1)


def join_pieces(pieces: NDArray[np.float32], words: NDArray[np.int64], count: int, how: Pieces) -> NDArray[np.float32]:
    """Vectors of pieces (P, D) and their words (P,) → (W, D). A word no piece belongs to is zero throughout."""
    joined = np.zeros((count, pieces.shape[1]), dtype=np.float32)
    places = np.flatnonzero(words >= 0)
    owners = words[places]
    if how == "first":
        # The last write stays, so the first piece comes last.
        joined[owners[::-1]] = pieces[places[::-1]]
    elif how == "last":
        joined[owners] = pieces[places]
    elif how == "mean":
        np.add.at(joined, owners, pieces[places])
        joined /= np.maximum(np.bincount(owners, minlength=count), 1)[:, None].astype(np.float32)
    else:
        joined[owners] = -np.inf
        np.maximum.at(joined, owners, pieces[places])
    return joined
