"""Which examples make a batch: like lengths together, so that hardly anything is padded.

An epoch is shuffled, cut into pools of many batches, each pool sorted by length and cut into batches, and the batches
are shuffled. All of it follows from seed and epoch. Where examples do not fill the last batch, rows without a target
do: every update then has the same shape on every rank, and every example counts once an epoch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from malmoi.data.order import shuffle_epoch, shuffle_places
from malmoi.data.randomness import draw_key
from malmoi.tasks.ragged import Items, TaskBatch, cut_batch

_BATCHES = 11  # the purpose of random numbers, see data/randomness.py
_POOL = 50  # batches that are sorted together
_NOBODY = -1


class LikeLengthBatches:
    """The batches of a run over items."""

    def __init__(self, items: Items, batch_size: int, pad_id: int, seed: int) -> None:
        self._items, self._batch_size, self._pad_id, self._seed = items, batch_size, pad_id, seed
        self.steps_an_epoch = -(-len(items) // batch_size)
        self._epoch = _NOBODY
        self._plan: NDArray[np.int64] = np.zeros((0, batch_size), np.int64)

    def batch(self, step: int, positions: NDArray[np.int64]) -> TaskBatch:
        whole = self.items_of(step)
        real = whole != _NOBODY
        # The first is the shortest: filling up with it costs least.
        whole = np.where(real, whole, whole[0])
        return cut_batch(
            self._items,
            whole[positions],
            self._pad_id,
            real=real[positions],
            # Micro-batches are as wide as the whole batch, so that a row drops the same elements in any of them.
            width=int(self._items.lengths[whole].max()),
            count=int(np.diff(self._items.rows)[whole].max()),
        )

    def items_of(self, step: int) -> NDArray[np.int64]:
        """The items of the global batch of a step, -1 where it is not full."""
        epoch, place = divmod(step, self.steps_an_epoch)
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self._lay_out(epoch)
        row: NDArray[np.int64] = self._plan[place]
        return row

    def _lay_out(self, epoch: int) -> NDArray[np.int64]:
        count, size, steps = len(self._items), self._batch_size, self.steps_an_epoch
        order = shuffle_epoch(self._seed, epoch, np.arange(count), count)
        pools = np.arange(count) // (size * _POOL)
        order = order[np.lexsort((self._items.lengths[order], pools))]
        plan = np.full(steps * size, _NOBODY, np.int64)
        plan[:count] = order
        places = shuffle_places(np.arange(steps), steps, draw_key(self._seed, _BATCHES, epoch))
        return plan.reshape(steps, size)[places]

    def locate(self, step: int) -> str:
        return f"the examples numbered {', '.join(str(one) for one in self.items_of(step) if one != _NOBODY)} (from 0)"
