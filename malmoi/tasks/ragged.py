"""Encoded examples: sequences of many lengths laid end to end, and the rectangles cut from them.

An item is what a batch is made of: one sequence for most tasks, one for each choice or for each text of a pair for
others. N items, R sequences, K tokens in all; B items of a batch, C sequences of each, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from malmoi.blocks.output import EncoderOutput


@dataclass(frozen=True)
class Items:
    """Items by the sequences they consist of. What is asked of an item stands in `targets`: a row for each item, or, if
    there is one for each token, `token_targets`. `notes` are what a task has to know of a token later."""

    ids: NDArray[np.int32]  # (K,)
    types: NDArray[np.int8]  # (K,)
    starts: NDArray[np.int64]  # (R + 1,): where each sequence begins
    rows: NDArray[np.int64]  # (N + 1,): the first sequence of each item
    owners: NDArray[np.int64]  # (N,): the example it was made of
    targets: NDArray[Any] | None = None  # (N, …)
    token_targets: NDArray[np.int64] | None = None  # (K,)
    notes: NDArray[np.int32] | None = None  # (K, …)
    shrunk: int = 0  # answers of which the ends were no tokens, and were left out

    def __len__(self) -> int:
        return len(self.owners)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The tokens of the longest sequence of each item."""
        longest: NDArray[np.int64] = np.maximum.reduceat(np.diff(self.starts), self.rows[:-1])
        return longest

    def tokens(self, item: int) -> slice:
        """Where the tokens of an item of one sequence lie."""
        row = self.rows[item]
        return slice(int(self.starts[row]), int(self.starts[row + 1]))


@dataclass(frozen=True)
class TaskBatch:
    """Items padded to one length. `real` is false for rows that only fill up the last batch of an epoch."""

    input_ids: NDArray[np.int64]  # (B · C, T)
    token_type_ids: NDArray[np.int64]  # (B · C, T)
    attention_mask: NDArray[np.bool_] | None  # (B · C, T); None where nothing is padded
    present: NDArray[np.bool_]  # (B, C): which sequences an item has
    real: NDArray[np.bool_]  # (B,)
    targets: NDArray[Any] | None  # (B, …), or (B, T) where every token has one

    def count_tokens(self) -> int:
        return self.input_ids.size if self.attention_mask is None else int(self.attention_mask.sum())

    def count_rows(self) -> int:
        return len(self.input_ids)


def lay_items(sequences: Sequence[Sequence[Any]], owners: Sequence[int], **others: Any) -> Items:
    """Items from the encodings (`ids`, `type_ids`) of their sequences."""
    rows = [one for item in sequences for one in item]
    ids = [one.ids for one in rows]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in ids], dtype=np.int64)))
    return Items(
        ids=np.fromiter((id for row in ids for id in row), np.int32, int(starts[-1])),
        types=np.fromiter((kind for one in rows for kind in one.type_ids), np.int8, int(starts[-1])),
        starts=starts,
        rows=np.concatenate(([0], np.cumsum([len(item) for item in sequences], dtype=np.int64))),
        owners=np.asarray(owners, np.int64),
        **others,
    )


def join_items(parts: Sequence[Items], examples: Sequence[int]) -> Items:
    """Items of several blocks of so many examples each, one after the other."""

    def join(name: str) -> NDArray[Any] | None:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    def chain(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Bounds that begin with 0 each, made to go on where the ones before end."""
        shifts = np.cumsum([0, *(array[-1] for array in arrays[:-1])])
        return np.concatenate([[0], *(array[1:] + shift for array, shift in zip(arrays, shifts, strict=True))])

    firsts = np.cumsum([0, *examples[:-1]])
    ids, types = join("ids"), join("types")
    assert ids is not None and types is not None
    return Items(
        ids=ids,
        types=types,
        starts=chain([part.starts for part in parts]),
        rows=chain([part.rows for part in parts]),
        owners=np.concatenate([part.owners + first for part, first in zip(parts, firsts, strict=True)]),
        targets=join("targets"),
        token_targets=join("token_targets"),
        notes=join("notes"),
        shrunk=sum(part.shrunk for part in parts),
    )


def cut_batch(
    items: Items,
    chosen: NDArray[np.int64],
    pad_id: int,
    *,
    real: NDArray[np.bool_] | None = None,
    width: int | None = None,
    count: int | None = None,
) -> TaskBatch:
    """These items as a batch of `width` positions and `count` sequences an item; by default as few as they need."""
    firsts, counts = items.rows[chosen], items.rows[chosen + 1] - items.rows[chosen]
    count = count or int(counts.max())
    width = width or int(items.lengths[chosen].max())
    present = np.arange(count) < counts[:, None]  # (B, C)
    # A sequence that an item does not have is stood for by the first token of its first one.
    rows = np.where(present, firsts[:, None] + np.arange(count), firsts[:, None]).reshape(-1)
    lengths = np.where(present.reshape(-1), items.starts[rows + 1] - items.starts[rows], 1)
    mask = np.arange(width) < lengths[:, None]  # (B · C, T)
    places = (items.starts[rows][:, None] + np.arange(width))[mask]

    def lay(values: NDArray[Any], filling: int) -> NDArray[np.int64]:
        laid = np.full(mask.shape, filling, np.int64)
        laid[mask] = values[places]
        return laid

    real = np.ones(len(chosen), dtype=bool) if real is None else real
    targets = None if items.targets is None else items.targets[chosen]
    if items.token_targets is not None:
        targets = lay(items.token_targets, IGNORED)
        targets[~real] = IGNORED
    return TaskBatch(lay(items.ids, pad_id), lay(items.types, 0), None if mask.all() else mask, present, real, targets)


def encode_batch(model: Any, batch: TaskBatch, device: torch.device) -> EncoderOutput:
    """What the encoder makes of a batch."""
    mask = batch.attention_mask
    output: EncoderOutput = model(
        input_ids=to_tensor(batch.input_ids, device),
        attention_mask=None if mask is None else to_tensor(mask, device),
        token_type_ids=to_tensor(batch.token_type_ids, device),
    )
    return output


def to_tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    import torch

    return torch.from_numpy(array).to(device, non_blocking=True)
