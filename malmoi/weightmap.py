"""Names of weights, ours ↔ theirs: one table that is read in both directions.

A row names one of our tensors and the tensor, or the tensors stacked on their rows, that hold it in the files everybody
reads. `{i}` stands for the number of a layer. Names are matched whole, so rows do not depend on their order, and a name
left over on either side is an error that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Row:
    """Our tensor `ours` is theirs; where they have several, ours is those stacked on their first dimension."""

    ours: str
    theirs: tuple[str, ...]

    def number(self, layer: int) -> Row:
        return Row(self.ours.format(i=layer), tuple(name.format(i=layer) for name in self.theirs))


@dataclass(frozen=True)
class Matched:
    """Tensors under our names, and what did not fit: ours that nobody gave, theirs that nobody wants."""

    tensors: dict[str, Tensor]
    missing: list[str]
    unexpected: list[str]


def row(ours: str, *theirs: str) -> Row:
    return Row(ours, theirs)


def linear_rows(ours: str, *theirs: str) -> list[Row]:
    """The weight and the bias of a linear layer or a layer norm."""
    return [Row(f"{ours}.{part}", tuple(f"{name}.{part}" for name in theirs)) for part in ("weight", "bias")]


class WeightMap:
    """The table of a system for a number of layers."""

    def __init__(self, rows: Iterable[Row], layers: int) -> None:
        self.rows = list(_expand(rows, layers))

    def read(self, theirs: Mapping[str, Tensor], wanted: Iterable[str]) -> Matched:
        """Their tensors as ours. `wanted` are the names our model has."""
        import torch

        wanted = set(wanted)
        tensors: dict[str, Tensor] = {}
        used: set[str] = set()
        for line in self.rows:
            if line.ours in wanted and all(name in theirs for name in line.theirs):
                parts = [theirs[name] for name in line.theirs]
                tensors[line.ours] = parts[0] if len(parts) == 1 else torch.cat(parts)
                used.update(line.theirs)
        return Matched(tensors, sorted(wanted - set(tensors)), sorted(set(theirs) - used))

    def write(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Our tensors as theirs. A tensor of ours without a row is a mistake in the table."""
        theirs: dict[str, Tensor] = {}
        used: set[str] = set()
        for line in self.rows:
            if line.ours in ours:
                parts = ours[line.ours].chunk(len(line.theirs))
                theirs.update(zip(line.theirs, (part.contiguous() for part in parts), strict=True))
                used.add(line.ours)
        forgotten = sorted(set(ours) - used)
        if forgotten:
            raise LookupError(f"no row of the weight table names {', '.join(forgotten)}")
        return theirs


def _expand(rows: Iterable[Row], layers: int) -> Iterator[Row]:
    for line in rows:
        if "{i}" in line.ours:
            yield from (line.number(layer) for layer in range(layers))
        else:
            yield line
