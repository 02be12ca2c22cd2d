"""What stands on an encoder for a task: a head, and the names of what it answers.

B sequences, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from malmoi.blocks.dropout import Dropout
from malmoi.blocks.head import Head
from malmoi.blocks.output import EncoderOutput
from malmoi.weightmap import Row


@dataclass(frozen=True)
class HeadForm:
    """How a system makes a head of some shape: the class of transformers, the parts it needs, its weights' names."""

    architecture: str
    needs: frozenset[str]
    build: Callable[[Any, Head], nn.Module]
    rows: Sequence[Row]


class PooledHead(nn.Module):
    """A linear layer on the pooled vector of a sequence."""

    def __init__(self, hidden_size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(hidden_size, outputs)

    def forward(self, encoded: EncoderOutput) -> Tensor:
        """→ (B, outputs)"""
        logits: Tensor = self.output(self.dropout(encoded.pooler_output))
        return logits


class TokenHead(nn.Module):
    """A linear layer on the vector of every token."""

    def __init__(self, hidden_size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(hidden_size, outputs)

    def forward(self, encoded: EncoderOutput) -> Tensor:
        """→ (B, T, outputs)"""
        logits: Tensor = self.output(self.dropout(encoded.last_hidden_state))
        return logits
