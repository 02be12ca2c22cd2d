"""What an encoder returns, under the names everybody knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class EncoderOutput:
    """Unpacks to what is there: `last_hidden_state, pooler_output = model(...)`, and one more for each thing asked for.

    `hidden_states` holds num_hidden_layers + 1 tensors, the first of them the embeddings.
    """

    last_hidden_state: Tensor  # (B, T, hidden)
    pooler_output: Tensor | None = None  # (B, hidden)
    hidden_states: tuple[Tensor, ...] | None = None  # each (B, T, hidden)
    attentions: tuple[Tensor, ...] | None = None  # each (B, H, T, T)

    def __iter__(self) -> Iterator[Any]:
        values = (getattr(self, field.name) for field in fields(self))
        return (value for value in values if value is not None)
