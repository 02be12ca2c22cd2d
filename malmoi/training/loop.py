"""The training loop: a generator that yields a Step for every update. Callers log, save and stop.

A step is a function of the weights and its number alone: examples, dropout and learning rate follow from the number, so
a run that is resumed at a step goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from malmoi.blocks.dropout import dropout_streams
from malmoi.data.randomness import draw_key
from malmoi.errors import MalmoiError
from malmoi.objectives.task import AnyBatch, BatchT, BatchT_co, Task
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.optimizer import Optimizer, find_learning_rate
from malmoi.training.options import Precision, TrainingOptions
from malmoi.training.sharding import is_sharded, put_apart
from malmoi.values import Step

_DROPOUT = 7  # the purpose of random numbers, see data/randomness.py


class BatchSource(Protocol[BatchT_co]):
    """Where the batches of a run come from."""

    def batch(self, step: int, positions: NDArray[np.int64]) -> BatchT_co:
        """The rows at these positions of the global batch of a step."""

    def divide(self, step: int, positions: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Which of these rows are better computed apart from the others."""
        return [positions]

    def locate(self, step: int) -> str:
        """How a person can look at the examples of a step."""


def train(
    model: nn.Module,
    optimizer: Optimizer,
    source: BatchSource[BatchT],
    task: Task[BatchT],
    course: Course,
    world: World,
    *,
    seed: int,
    first_step: int = 0,
) -> Iterator[Step]:
    """Train from `first_step` on. When a Step is yielded, its update has been made, and the course may turn."""
    planned = plan_rows(course.at(first_step), world)
    model.train()
    for step in itertools.count(first_step):
        if step >= course.total:
            return
        options = course.at(step)
        began = time.perf_counter()
        micro_batches = [some for positions in planned for some in source.divide(step, positions)]
        batches = [source.batch(step, positions) for positions in micro_batches]
        counts = world.sum_numbers(_add_counts(task.count(batch) for batch in batches))
        sums: dict[str, float] = dict.fromkeys((f"{kind}.{name}" for name in counts for kind in ("loss", "right")), 0.0)
        judged: set[str] = set()  # what is right or wrong, not near or far
        for positions, batch in zip(micro_batches, batches, strict=True):
            with _name_dropout(seed, step, positions, batch, world.device), cast(options.precision, world.device):
                parts = task.losses(model, batch, world.device)
            loss = torch.stack([part.total / max(counts[name], 1) for name, part in parts.items()]).sum()
            optimizer.backward(loss)
            for name, part in parts.items():
                sums[f"loss.{name}"] += float(part.total.detach())
                if part.right is not None:
                    sums[f"right.{name}"] += float(part.right)
                    judged.add(name)
        sums = world.sum_numbers(sums)
        means = {name: sums[f"loss.{name}"] / max(count, 1) for name, count in counts.items()}
        if not all(map(math.isfinite, means.values())):
            figures = ", ".join(f"{name} {value}" for name, value in means.items())
            culprits = _find_culprits(model, source, task, step, np.concatenate(micro_batches), world.device)
            raise _not_finite(step, f"loss ({figures})", culprits, source)
        norm = optimizer.combine_gradients()
        if not math.isfinite(norm) and not optimizer.tolerates_overflow:
            raise _not_finite(step, "gradient", [], source)
        rate = find_learning_rate(step, options)
        optimizer.update(rate)
        tokens = world.sum_numbers({"tokens": float(sum(batch.count_tokens() for batch in batches))})["tokens"]
        yield Step(
            step=step,
            loss=sum(means.values()),
            parts=means,
            accuracy={name: sums[f"right.{name}"] / max(counts[name], 1) for name in counts if name in judged},
            learning_rate=rate,
            gradient_norm=norm,
            tokens=int(tokens),
            seconds=time.perf_counter() - began,
        )


def _name_dropout(
    seed: int, step: int, positions: NDArray[np.int64], batch: AnyBatch, device: torch.device
) -> AbstractContextManager[None]:
    """A row drops the same elements in whatever micro-batch, on whatever rank."""
    by_row = draw_key(seed, _DROPOUT, step, positions) >> np.uint64(1)
    shared = draw_key(seed, _DROPOUT, step) >> np.uint64(1)
    return dropout_streams(by_row.tolist(), shared=int(shared[0]), rows=batch.count_rows(), device=device)


def _not_finite(step: int, what: str, culprits: list[int], source: BatchSource[Any]) -> MalmoiError:
    rows = f" It comes from row {', '.join(map(str, culprits))} of the batch." if culprits else ""
    return MalmoiError(
        f"step {step}: the {what} is not finite; the weights are those before this step.{rows} Look at the examples "
        f"with: {source.locate(step)}; and try a lower --lr in another --out."
    )


@torch.no_grad()
def _find_culprits(
    model: nn.Module,
    source: BatchSource[BatchT],
    task: Task[BatchT],
    step: int,
    rows: NDArray[np.int64],
    device: torch.device,
) -> list[int]:
    """The rows of the batch whose own loss is not finite, if it is single rows that do it."""
    if is_sharded(model):
        return []  # a divided model computes only where all ranks do
    model.eval()
    guilty = []
    for row in rows:
        parts = task.losses(model, source.batch(step, np.array([row])), device)
        if not all(math.isfinite(float(part.total)) for part in parts.values()):
            guilty.append(int(row))
    return guilty if len(guilty) < len(rows) else []


def cast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Arithmetic of the forward pass. bf16 and fp16 on a GPU are written with care but untested on hardware."""
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    if precision not in types:
        return nullcontext()
    return torch.autocast(device.type, dtype=types[precision])


def plan_rows(options: TrainingOptions, world: World) -> list[NDArray[np.int64]]:
    """Which rows of the global batch this rank computes, micro-batch by micro-batch."""
    size = options.batch_size
    if size % world.size:
        raise MalmoiError(f"--batch-size {size} cannot be divided among {world.size} ranks; choose a multiple of it.")
    own = size // world.size
    rows = options.micro_batch or own
    if own % rows:
        raise MalmoiError(f"--micro-batch {rows}: it must divide the {own} sequences that each rank computes.")
    # Dealt out in turn: where rows are sorted by length, each rank has as much to do as the others.
    dealt = np.arange(world.rank, size, world.size)
    return [dealt[start : start + rows] for start in range(0, own, rows)]


def _add_counts(counts: Iterator[dict[str, int]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0.0) + count
    return total


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: Iterable[BatchT], task: Task[BatchT], precision: Precision, device: torch.device
) -> tuple[dict[str, float], dict[str, float]]:
    """Mean losses and accuracies over some batches; every rank computes them all, so that all agree."""
    was_training = model.training
    model.eval()
    sums: dict[str, float] = {}
    right: dict[str, float] = {}
    counts: dict[str, int] = {}
    for batch in batches:
        with cast(precision, device):
            parts = task.losses(model, batch, device)
        for name, part in parts.items():
            sums[name] = sums.get(name, 0.0) + float(part.total)
            if part.right is not None:
                right[name] = right.get(name, 0.0) + float(part.right)
            counts[name] = counts.get(name, 0) + part.count
    model.train(was_training)
    put_apart(model)
    return (
        {name: sums[name] / max(count, 1) for name, count in counts.items()},
        {name: count / max(counts[name], 1) for name, count in right.items()},
    )
