"""How texts become vectors: the options that Python and the command line share."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal, get_args

from malmoi.errors import MalmoiError
from malmoi.features.layers import Layers, parse_combination
from malmoi.features.pooling import POOLINGS

Truncation = Literal["error", "right", "window"]
Pieces = Literal["first", "mean", "last", "max"]

# So many tokens keep two cores busy, and their activations stay near the processor.
BATCH_TOKENS = 2048


@dataclass(frozen=True)
class BatchOptions:
    """What is done with long texts, and how much is computed at a time."""

    truncate: Truncation = "error"
    batch_tokens: int = BATCH_TOKENS

    def __post_init__(self) -> None:
        refuse_unknown("truncate", self.truncate, get_args(Truncation))
        if self.batch_tokens < 1:
            raise MalmoiError(f"--batch-tokens {self.batch_tokens}: at least 1 is needed.")


@dataclass(frozen=True)
class VectorOptions(BatchOptions):
    """How a text becomes a vector. None leaves it to what the model's folder says."""

    layers: Layers = "last"
    combine: str | tuple[float, ...] = "concat"
    pool: str | None = None
    normalize: bool | None = None
    dimensions: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_combination(self.combine)
        if self.pool is not None:
            refuse_unknown("pool", self.pool, POOLINGS)


@dataclass(frozen=True)
class WordOptions(BatchOptions):
    """How the words of a text become vectors."""

    layers: Layers = "last4"
    combine: str | tuple[float, ...] = "concat"
    pieces: Pieces = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_combination(self.combine)
        refuse_unknown("pieces", self.pieces, get_args(Pieces))


def refuse_unknown(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MalmoiError(f"--{option} {value}: choose one of {', '.join(known)}{hint}")
