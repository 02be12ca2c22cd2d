"""Texts → sequences of ids that fit a model: with [CLS] and [SEP], long texts refused, cut, or laid out in windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Encoding

from malmoi.errors import MalmoiError
from malmoi.features.options import Truncation
from malmoi.text.given import check_text
from malmoi.text.panics import catch_panics
from malmoi.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Sequences:
    """Sequences to be computed. `texts` names the text each one belongs to; the windows of a text follow each other.

    `counts` are the tokens of each sequence that stand for text, `cut` is how many texts were longer than the model.
    """

    ids: list[list[int]]
    texts: list[int]
    counts: list[int]
    cut: int


class SequenceMaker:
    """Encodes texts for a model that takes at most `limit` tokens, [CLS] and [SEP] included."""

    def __init__(self, tokenizer: Tokenizer, limit: int) -> None:
        self.tokenizer = tokenizer
        self.limit = limit

    @cached_property
    @catch_panics()
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that stand before and behind a text."""
        encoding = self.tokenizer.backend.encode("a", add_special_tokens=True)
        begin, end = _frame_of(encoding)
        return encoding.ids[:begin], encoding.ids[end:]

    @catch_panics()
    def encode(self, texts: Sequence[str], first: int, *, offsets: bool = False) -> list[Encoding]:
        """Texts as ids, all cores at once. `first` is the number of the first text, for complaints."""
        backend = self.tokenizer.backend
        try:
            return (backend.encode_batch if offsets else backend.encode_batch_fast)(list(texts))
        except TypeError:
            for number, text in enumerate(texts, first):
                check_text(text, f"text {number}")
            raise

    def lay_out(self, content: Sequence[list[int]], first: int, truncate: Truncation) -> Sequences:
        """Sequences for texts given as ids that have their special tokens already."""
        made = Sequences([], [], [], 0)
        begin, end = map(len, self.frame)
        cut = 0
        for number, ids in enumerate(content):
            if len(ids) <= self.limit:
                if not ids:
                    raise MalmoiError(f"text {first + number}: nothing of it is left as tokens.")
                pieces = [ids]
            else:
                cut += 1
                pieces = self._shorten(ids, first + number, truncate)
            made.ids.extend(pieces)
            made.texts.extend([number] * len(pieces))
            made.counts.extend(len(piece) - begin - end for piece in pieces)
        return Sequences(made.ids, made.texts, made.counts, cut)

    def _shorten(self, ids: list[int], number: int, truncate: Truncation) -> list[list[int]]:
        before, behind = self.frame
        room = self.limit - len(before) - len(behind)
        if truncate == "error" or room < 1:
            raise MalmoiError(
                f"text {number} has {len(ids):,} tokens, but the model takes {self.limit:,}; shorten it, or choose "
                "truncate right (its beginning counts) or window (all of it, in parts)."
            )
        text = ids[len(before) : len(ids) - len(behind)]
        starts = range(0, len(text), room) if truncate == "window" else [0]
        return [[*before, *text[start : start + room], *behind] for start in starts]


def _frame_of(encoding: Encoding) -> tuple[int, int]:
    """Where the text begins and ends among the special tokens of an encoding."""
    is_special = encoding.special_tokens_mask
    begin = next((place for place, special in enumerate(is_special) if not special), None)
    if begin is None:  # only special tokens: one in front, the others behind
        return min(1, len(is_special)), min(1, len(is_special))
    end = len(is_special) - next(place for place, special in enumerate(reversed(is_special)) if not special)
    return begin, end
