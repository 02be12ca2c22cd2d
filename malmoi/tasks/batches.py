"""Which examples make a batch: any, drawn from the whole epoch; and which of its rows are computed together.

Batches that hold like lengths only would learn worse: their means weigh a token the more the fewer its batch has, and
their gradients lean to what short or long examples have in common. So an epoch is shuffled and cut into batches, and
what saves the padding is that rows of like length within a batch are computed together: losses are sums, so no division
changes the gradient. All of it follows from seed and step. Where examples do not fill the last batch, rows without a
target do: every update then has the same shape on every rank, and every example counts once an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.data.order import shuffle_epoch
from malmoi.tasks.ragged import Items, TaskBatch, cut_batch
from malmoi.training.loop import BatchSource

# What it costs to compute rows apart, in tokens that could be computed instead: measured with models of 4 to 6 layers.
_COST_OF_A_GROUP = 48
_NOBODY = -1


@dataclass(frozen=True)
class _Plan:
    """The global batch of a step: its items, longest first, and where each group of like lengths begins and ends."""

    step: int
    items: NDArray[np.int64]  # (B,), -1 where the batch is not full
    bounds: NDArray[np.int64]  # (groups + 1,)


class TaskBatches(BatchSource[TaskBatch]):
    """The batches of a run over items. With `together`, a loss needs all rows of a batch at once."""

    def __init__(self, items: Items, batch_size: int, pad_id: int, seed: int, *, together: bool = False) -> None:
        self._items, self._batch_size, self._pad_id, self._seed = items, batch_size, pad_id, seed
        self._together = together
        self._sequences = np.diff(items.rows)
        self.steps_an_epoch = -(-len(items) // batch_size)
        self._epoch = _NOBODY
        self._order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._planned = _Plan(_NOBODY, self._order, self._order)

    def batch(self, step: int, positions: NDArray[np.int64]) -> TaskBatch:
        plan = self._plan(step)
        real = plan.items != _NOBODY
        # The last example is the shortest: filling up with it costs least.
        items = np.where(real, plan.items, plan.items[real][-1])
        # As wide as the groups these rows are of, so that a row drops the same elements however a batch is divided.
        groups = np.searchsorted(plan.bounds, positions, side="right") - 1
        peers = items[plan.bounds[groups.min()] : plan.bounds[groups.max() + 1]]
        return cut_batch(
            self._items,
            items[positions],
            self._pad_id,
            real=real[positions],
            width=int(self._items.lengths[peers].max()),
            count=int(self._sequences[peers].max()),
        )

    def divide(self, step: int, positions: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        groups = np.searchsorted(self._plan(step).bounds, positions, side="right") - 1
        return [positions[groups == group] for group in np.unique(groups)]

    def items_of(self, step: int) -> NDArray[np.int64]:
        """The items of the global batch of a step, -1 where it is not full."""
        return self._plan(step).items

    def locate(self, step: int) -> str:
        return f"the examples numbered {', '.join(str(one) for one in self.items_of(step) if one != _NOBODY)} (from 0)"

    def _plan(self, step: int) -> _Plan:
        if step != self._planned.step:
            epoch, place = divmod(step, self.steps_an_epoch)
            if epoch != self._epoch:
                count = len(self._items)
                self._epoch, self._order = epoch, shuffle_epoch(self._seed, epoch, np.arange(count), count)
            drawn = self._order[place * self._batch_size : (place + 1) * self._batch_size]
            tokens = self._items.lengths[drawn] * self._sequences[drawn]
            order = np.lexsort((-tokens, -self._items.lengths[drawn]))
            items = np.full(self._batch_size, _NOBODY, np.int64)
            items[: len(drawn)] = drawn[order]
            bounds = self._group(items)
            self._planned = _Plan(step, items, bounds)
        return self._planned

    def _group(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where to cut rows that are sorted by length, so that padding and groups together cost least."""
        size = len(items)
        if self._together:
            return np.array([0, size])
        filled = np.where(items == _NOBODY, items[items != _NOBODY][-1], items)
        lengths, sequences = self._items.lengths[filled], self._sequences[filled]
        best = np.zeros(size + 1)  # what the first rows cost, divided as well as can be
        begins = np.zeros(size + 1, np.int64)  # where the last group of that division begins
        for end in range(1, size + 1):
            most = np.maximum.accumulate(sequences[:end][::-1])[::-1]  # of the rows from each one on
            costs = best[:end] + np.arange(end, 0, -1) * lengths[:end] * most + _COST_OF_A_GROUP
            begins[end] = int(costs.argmin())
            best[end] = costs[begins[end]]
        bounds = [size]
        while bounds[-1]:
            bounds.append(int(begins[bounds[-1]]))
        return np.array(bounds[::-1])
