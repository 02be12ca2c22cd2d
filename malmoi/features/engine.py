"""What computes hidden states: the one thing that an engine for vectors has to do.

Everything else here (layers, pooling, words, batches) is numpy, so that an engine without torch serves vectors as well.

B sequences, T positions, L layers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EngineOutput:
    """The layers that were asked for, by number: 0 are the embeddings, L is the last one."""

    hidden_states: dict[int, NDArray[np.float32]]  # each (B, T, hidden)
    pooler_output: NDArray[np.float32] | None  # (B, hidden)


class Engine(Protocol):
    """Computes hidden states of sequences that are padded on the right."""

    num_hidden_layers: int
    hidden_size: int
    max_positions: int
    has_pooler: bool

    def run(
        self,
        input_ids: NDArray[np.int64],  # (B, T)
        token_type_ids: NDArray[np.int64],  # (B, T)
        attention_mask: NDArray[np.bool_] | None,  # (B, T); None where nothing is padded
        layers: Collection[int],
        pooler: bool,
    ) -> EngineOutput:
        """Compute `layers` (0 to L), and the pooler's output where it is asked for."""
        ...


class HeadedEngine(Engine, Protocol):
    """An engine that also computes the head for a task."""

    def run_head(
        self,
        input_ids: NDArray[np.int64],  # (B, T)
        token_type_ids: NDArray[np.int64],  # (B, T)
        attention_mask: NDArray[np.bool_] | None,  # (B, T); None where nothing is padded
    ) -> NDArray[np.float32]:
        """What the head gives: (B, outputs), or (B, T, outputs) where it answers for each token."""
        ...


@runtime_checkable
class AttendingEngine(Protocol):
    """An engine that can also say what each token looked at."""

    def attend(self, input_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The attention weights (L, H, T, T) of one sequence (1, T)."""
        ...
