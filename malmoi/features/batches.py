"""Sequences → batches of like lengths that hold a budget of tokens, so that next to nothing is padding.

B sequences, T positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# A batch ends where its next sequence is shorter than its longest by more than this share.
_SLACK = 1 / 16


def plan_batches(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """The places of the sequences of each batch, the longest first. The same lengths always make the same batches."""
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        longest = int(lengths[order[begin]])
        end = begin + max(1, batch_tokens // longest)
        shortest = longest - max(1, int(longest * _SLACK))
        alike = np.searchsorted(-lengths[order[begin:end]], -shortest, side="right")
        yield order[begin : begin + alike]
        begin += int(alike)


def fill_batch(
    sequences: Sequence[list[int]], places: NDArray[np.int64], pad_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
    """The ids (B, T), how many are tokens (B,), and the mask (B, T): None where nothing is padded."""
    rows = [sequences[place] for place in places]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths[0])
    if (lengths == width).all():
        return np.array(rows, dtype=np.int64), lengths, None
    ids = np.full((len(rows), width), pad_id, dtype=np.int64)
    for row, target in zip(rows, ids, strict=True):
        target[: len(row)] = row
    return ids, lengths, np.arange(width) < lengths[:, None]
