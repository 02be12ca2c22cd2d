"""The best weights of a run so far, by a figure on examples held out, and when it has stopped getting better."""

from __future__ import annotations

import math
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from malmoi.errors import MalmoiError
from malmoi.training.log import read_log
from malmoi.training.run import Run

_LOWER_IS_BETTER = {"mean_squared_error"}


class BestWeights:
    """Keeps the weights of the best evaluation in a file, with its figure. What came before is in the log, so a resumed
    run knows it; of a log that was damaged it still knows the best."""

    def __init__(self, run: Run, metric: str, patience: int | None) -> None:
        self._path = run.checkpoints / "best.safetensors"
        self._run, self._metric, self._patience = run, metric, patience
        self._values: list[float] | None = None

    def look_back(self) -> None:
        """Take up what earlier evaluations said."""
        if self._values is not None:
            return
        records: list[dict[str, Any]] = [one for one in read_log(self._run.out) if "evaluation" in one]
        values = {one["step"] + 1: self._judge(one["evaluation"]) for one in records}
        kept = self._read_figure()
        # A file of a later step was written by a run that was killed before its checkpoint.
        if kept is not None and kept[0] <= self._run.first_step:
            values.setdefault(*kept)
        self._values = [values[steps] for steps in sorted(values)]

    def note(self, steps: int, evaluation: dict[str, float], model: nn.Module) -> None:
        """Take in the evaluation after so many steps, and keep the weights unless others were better."""
        self.look_back()
        assert self._values is not None
        value = self._judge(evaluation)
        # As good counts as better: the later weights have learned more, even where the figure does not show it yet.
        if self._run.world.is_first and value >= max(self._values, default=-math.inf):
            self._save(model, {"steps": str(steps), "figure": repr(value)})
        self._values.append(value)

    def _read_figure(self) -> tuple[int, float] | None:
        """After how many steps the weights in the file were, and how good."""
        try:
            with safe_open(self._path, framework="pt") as file:
                facts = file.metadata() or {}
            return int(facts["steps"]), float(facts["figure"])
        except (OSError, SafetensorError, KeyError, ValueError):
            return None

    def _save(self, model: nn.Module, facts: dict[str, str]) -> None:
        beside = self._path.with_suffix(".partial")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            weights = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
            save_file(weights, beside, metadata=facts)
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

    def restore(self, model: nn.Module) -> int | None:
        """Give the model the best weights, if there were any; returns after how many steps they were."""
        if not self._path.is_file():
            return None
        try:
            weights = load_file(self._path)
        except (OSError, SafetensorError) as failure:
            raise MalmoiError(
                f"{self._path}: the best weights are damaged ({failure}); choose another --out and train again."
            ) from None
        with torch.no_grad():
            model.load_state_dict(weights)
        kept = self._read_figure()
        return None if kept is None else kept[0]

    def _judge(self, evaluation: dict[str, float]) -> float:
        value = evaluation[self._metric]
        return -value if self._metric in _LOWER_IS_BETTER else value
