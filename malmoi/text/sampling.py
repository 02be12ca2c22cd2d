"""A part of a large text that stands for all of it: pieces taken evenly from beginning to end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

# A text longer than this is taken in pieces, so that a single book does not fill the sample.
_PIECE_CHARACTERS = 1 << 14
_SPACE = re.compile(r"\s")


class Sample:
    """The texts, or where they hold more than `most` characters, so much of them; `taken` and `seen` count characters.

    `share` says how much of all has been read, from 0 to 1: a piece is taken as long as no larger share of `most` is.
    It has to be the same each time the texts are gone through, and so is the sample then.
    """

    def __init__(self, texts: Iterable[str], most: int, share: Callable[[], float]) -> None:
        self._texts, self._most, self._share = texts, most, share
        self.taken = self.seen = 0

    def __iter__(self) -> Iterator[str]:
        self.taken = self.seen = 0
        for text in self._texts:
            for piece in _cut_pieces(text):
                self.seen += len(piece)
                if self.taken < self._most * self._share():
                    self.taken += len(piece)
                    yield piece


def _cut_pieces(text: str) -> Iterator[str]:
    """Pieces that lose no word: they are cut in front of white space."""
    begin = 0
    while len(text) - begin > _PIECE_CHARACTERS and (space := _SPACE.search(text, begin + _PIECE_CHARACTERS)):
        yield text[begin : space.start()]
        begin = space.start()
    yield text[begin:]
