"""What is learned, in the form that the training loop asks for: sums and counts, never means.

Whoever trains divides the sums over all micro-batches and all ranks by the counts over all of them, so that neither
accumulation nor ragged batches nor the number of ranks can change the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from malmoi.data.store import Store
from malmoi.objectives.options import ExampleOptions

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class AnyBatch(Protocol):
    """What the loop asks of a batch; the rest is between who makes it and who takes the loss."""

    def count_tokens(self) -> int: ...

    def count_rows(self) -> int:
        """The first dimension of the tensors made of it: the examples, or a multiple of them."""


BatchT = TypeVar("BatchT", bound=AnyBatch)
BatchT_co = TypeVar("BatchT_co", bound=AnyBatch, covariant=True)


@dataclass(frozen=True)
class LossPart:
    """The summed loss of one task over a micro-batch, how many predictions it is a sum of, how many were right; None
    where predictions are numbers, which are near or far."""

    total: Tensor
    count: int
    right: Tensor | None


@dataclass(frozen=True)
class Task(Generic[BatchT]):
    """How many predictions of each kind a batch holds, known before the model runs, and their summed losses."""

    count: Callable[[BatchT], dict[str, int]]
    losses: Callable[[Any, BatchT, torch.device], dict[str, LossPart]]


class ExampleSource(Protocol[BatchT_co]):
    """The examples of a store, for any step directly."""

    store: Store
    options: ExampleOptions

    @property
    def epoch_size(self) -> int: ...

    def batch(self, step: int, batch_size: int, positions: NDArray[np.int64] | None = None) -> BatchT_co:
        """The batch of a step, or those of its rows that stand at the given positions, as wide as the whole batch."""


@dataclass(frozen=True)
class Objective(Generic[BatchT]):
    """A way to pre-train: a store becomes examples, and examples a task.

    `trains` names the heads of a system (see catalog.py) that it trains; the encoder it always does. Other heads are
    neither computed nor saved as if they had learned something.
    """

    examples: Callable[[Store, ExampleOptions], ExampleSource[BatchT]]
    task: Task[BatchT]
    trains: frozenset[str]
