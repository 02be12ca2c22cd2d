"""The few types that flow from one part of malmoi to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus, and where it began, so that a later complaint can name the place."""

    text: str
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as token ids. `offsets` are character positions in the text as it was given, `word_ids` number its words;
    tokens that stand for no text ([CLS], [SEP]) have offsets (0, 0) and word id None."""

    ids: list[int]
    token_type_ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a model is fed for one step. B sequences, T positions.

    `labels` holds the original token at every position to be predicted and `IGNORED` elsewhere. `attention_mask` is
    None when nothing is padded. `next_sentence_label` is 0 where B follows A, 1 where B is random, and None for
    objectives without pairs.
    """

    input_ids: NDArray[np.int64]  # (B, T)
    token_type_ids: NDArray[np.int64]  # (B, T)
    attention_mask: NDArray[np.bool_] | None  # (B, T)
    labels: NDArray[np.int64]  # (B, T)
    next_sentence_label: NDArray[np.int64] | None  # (B,)

    def count_tokens(self) -> int:
        """How many of its positions are not padding."""
        return self.input_ids.size if self.attention_mask is None else int(self.attention_mask.sum())

    def count_rows(self) -> int:
        return len(self.input_ids)


IGNORED = -100


@dataclass(frozen=True, slots=True)
class Step:
    """One update of a training run, as it is logged. Losses are means over all ranks."""

    step: int
    loss: float
    parts: dict[str, float]
    accuracy: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens: int
    seconds: float
