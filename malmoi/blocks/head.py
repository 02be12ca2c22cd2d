"""What a head for a task answers, told without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# An answer for a whole sequence, for each token, for where a span begins and ends, for one choice of several.
Shape = Literal["sequence", "tokens", "span", "choice"]
Problem = Literal["single_label_classification", "multi_label_classification", "regression"]


@dataclass(frozen=True)
class Head:
    """What a head answers. `task` is the name of what it was trained for; `settings` are what that task remembers."""

    shape: Shape
    labels: tuple[str, ...]
    problem: Problem | None = None
    dropout: float | None = None  # of the head's input; the encoder's where nothing is said
    task: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> int:
        return {"span": 2, "choice": 1}.get(self.shape, len(self.labels))
