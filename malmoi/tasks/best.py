"""The best weights of a run so far, by a figure on examples held out, and when it has stopped getting better."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from malmoi.errors import MalmoiError
from malmoi.training.log import read_log

_LOWER_IS_BETTER = {"mean_squared_error"}


class BestWeights:
    """Keeps the weights of the best evaluation in a file. What came before is in the log, so a resumed run knows it."""

    def __init__(self, out: Path, metric: str, patience: int | None, *, writes: bool) -> None:
        self._path = out / "checkpoints" / "best.safetensors"
        self._out, self._metric, self._patience, self._writes = out, metric, patience, writes
        self._values: list[float] | None = None

    def look_back(self) -> None:
        """Take up what earlier evaluations said."""
        if self._values is None:
            records: list[dict[str, Any]] = read_log(self._out)
            self._values = [self._judge(one["evaluation"]) for one in records if "evaluation" in one]

    def note(self, evaluation: dict[str, float], model: nn.Module) -> None:
        """Take in an evaluation, and keep the weights if nothing was better."""
        self.look_back()
        assert self._values is not None
        value = self._judge(evaluation)
        if self._writes and value > max(self._values, default=-math.inf):
            self._save(model)
        self._values.append(value)

    def _save(self, model: nn.Module) -> None:
        beside = self._path.with_suffix(".partial")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            save_file({name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}, beside)
            beside.replace(self._path)
        except (OSError, SafetensorError) as failure:
            beside.unlink(missing_ok=True)
            raise MalmoiError(
                f"{self._path}: the best weights could not be written ({failure}); checkpoints are kept: when there is "
                "room, run the same command again and it goes on."
            ) from None

    def has_enough(self) -> bool:
        """Whether the last evaluations, as many as there is patience for, brought nothing better."""
        self.look_back()
        values = self._values
        if self._patience is None or not values:
            return False
        return len(values) - 1 - values.index(max(values)) >= self._patience

    def restore(self, model: nn.Module) -> None:
        """Give the model the best weights, if there were any."""
        if not self._path.is_file():
            return
        try:
            weights = load_file(self._path)
        except (OSError, SafetensorError) as failure:
            raise MalmoiError(
                f"{self._path}: the best weights are damaged ({failure}); choose another --out and train again."
            ) from None
        with torch.no_grad():
            model.load_state_dict(weights)

    def _judge(self, evaluation: dict[str, float]) -> float:
        value = evaluation[self._metric]
        return -value if self._metric in _LOWER_IS_BETTER else value
