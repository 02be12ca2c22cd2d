"""Dropout that is cheap on a CPU and the same for any division of a batch.

torch draws one random number for each element. Sixteen bits decide a dropout as well as sixty-four do, so here each
draw serves four elements; the probability is kept to 1/65536.

While `dropout_streams` is active, each row of a batch has a random stream of its own. So a row drops the same elements
whether its batch is computed at once, in micro-batches or on several ranks, and a step can be repeated without a saved
state. A tensor whose first dimension is not the batch (a table of positions, a router) has no such rows: it takes the
one stream that all micro-batches and ranks of the step share. The caller says which: `Dropout` or `SharedDropout`.

On other devices dropout by row is torch's own. It is seeded too, so that a step can be repeated; but what is dropped
then depends on how the batch is divided. That is written with care but untested on hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class _Streams:
    """The random streams of a micro-batch whose tensors have so many `rows`: the same number for each stream."""

    by_row: list[torch.Generator]
    rows: int
    shared: torch.Generator


_streams: _Streams | None = None


class Dropout(nn.Module):
    """Zero elements with a probability in training, and scale the others so that the expectation stays.

    For tensors whose first dimension is the batch.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        return self.drop(x)

    def drop(self, x: Tensor) -> Tensor:
        return drop(x, self.probability)

    def extra_repr(self) -> str:
        return str(self.probability)


class SharedDropout(Dropout):
    """The same for tensors without the rows of a batch: all parts of a step drop the same elements."""

    def drop(self, x: Tensor) -> Tensor:
        return drop_shared(x, self.probability)


@contextmanager
def dropout_streams(
    seeds: Sequence[int], *, shared: int, rows: int | None = None, device: torch.device = _CPU
) -> Iterator[None]:
    """Give each example of a micro-batch a stream of its own, and `shared` to what has no examples, while this is
    active. Tensors have so many `rows`; where an example has several, a multiple of the `seeds`."""
    global _streams
    rows = len(seeds) if rows is None else rows
    if rows % len(seeds):
        raise ValueError(f"{rows} rows cannot be divided among {len(seeds)} streams")
    if device.type != "cpu":
        # Both its dropout and its fused attention draw from the device's own generator.
        torch.get_device_module(device).manual_seed(seeds[0])
    before = _streams
    _streams = _Streams([_seed(seed) for seed in seeds], rows, _seed(shared))
    try:
        yield
    finally:
        _streams = before


def drop(x: Tensor, probability: float) -> Tensor:
    """`x` with elements dropped at random, each row of the batch by its own stream."""
    if _streams is not None and x.shape[0] != _streams.rows:
        raise ValueError(
            f"dropout by row of a tensor of {x.shape[0]} rows in a batch of {_streams.rows}; a tensor whose first "
            "dimension is not the batch takes SharedDropout"
        )
    if x.device.type != "cpu" or probability >= 1.0:
        return functional.dropout(x, probability)
    streams = [None] if _streams is None else _streams.by_row
    return x * _draw_mask(x.shape, probability, streams).to(x.dtype)


def drop_shared(x: Tensor, probability: float) -> Tensor:
    """`x` with elements dropped at random, by the stream that all of a step share."""
    if probability >= 1.0:
        return torch.zeros_like(x)
    stream = None if _streams is None else _streams.shared
    return x * _draw_mask(x.shape, probability, [stream]).to(x)


def _draw_mask(shape: torch.Size, probability: float, streams: Sequence[torch.Generator | None]) -> Tensor:
    """Zero where an element is dropped, elsewhere the factor that keeps the expectation.

    As floating-point numbers: multiplying by truth values costs several times as much.
    """
    count = shape.numel() // len(streams)
    bits = torch.empty((len(streams), -(-count // 4)), dtype=torch.int64)
    for row, stream in zip(bits, streams, strict=True):
        row.random_(-(1 << 63), None, generator=stream)  # all sixty-four bits
    dropped = round(probability * _LEVELS)
    kept = bits.view(torch.int16)[:, :count] >= dropped - _LEVELS // 2
    return kept.float().mul_(_LEVELS / (_LEVELS - dropped)).reshape(shape)


def _seed(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
