"""Dropout that is cheap on a CPU and the same for any division of a batch.

torch draws one random number for each element. Sixteen bits decide a dropout as well as sixty-four do, so here each
draw serves four elements; the probability is kept to 1/65536.

While `dropout_streams` is active, each row of a batch has a random stream of its own. So a row drops the same elements
whether its batch is computed at once, in micro-batches or on several ranks, and a step can be repeated without a saved
state. On other devices this is torch's own dropout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16
_streams: list[torch.Generator] | None = None


class Dropout(nn.Module):
    """Zero elements with a probability in training, and scale the others so that the expectation stays."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        return drop(x, self.probability)

    def extra_repr(self) -> str:
        return str(self.probability)


@contextmanager
def dropout_streams(seeds: list[int]) -> Iterator[None]:
    """Give each row of a batch of `len(seeds)` rows a stream of its own, for as long as this is active."""
    global _streams
    before = _streams
    _streams = [torch.Generator().manual_seed(seed) for seed in seeds]
    try:
        yield
    finally:
        _streams = before


def drop(x: Tensor, probability: float) -> Tensor:
    """`x` with elements dropped at random."""
    if x.device.type != "cpu" or probability >= 1.0:
        return functional.dropout(x, probability)
    return x * draw_mask(x.shape, probability).to(x.dtype)


def draw_mask(shape: torch.Size, probability: float) -> Tensor:
    """Zero where an element is dropped, elsewhere the factor that keeps the expectation.

    As floating-point numbers: multiplying by truth values costs several times as much.
    """
    streams: list[torch.Generator | None] = [None] if _streams is None else list(_streams)
    count = shape.numel() // len(streams)
    bits = torch.empty((len(streams), -(-count // 4)), dtype=torch.int64)
    for row, stream in zip(bits, streams, strict=True):
        row.random_(-(1 << 63), None, generator=stream)  # all sixty-four bits
    dropped = round(probability * _LEVELS)
    kept = bits.view(torch.int16)[:, :count] >= dropped - _LEVELS // 2
    return kept.float().mul_(_LEVELS / (_LEVELS - dropped)).reshape(shape)
