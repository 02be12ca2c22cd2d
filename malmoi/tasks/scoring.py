"""regress: a text, or two, and a number.

A fresh head answers numbers around 0, and would have a long way to scores around 2,000. So scores are learned with
their mean taken off and divided by their deviation, and the head of the finished model has both in its weights: whoever
reads the folder gets scores as they were in the examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.objectives.task import LossPart
from malmoi.tasks.encoding import pair_up
from malmoi.tasks.examples import Scored
from malmoi.tasks.kind import Kind, Mistake
from malmoi.tasks.metrics import pearson, spearman
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Score
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Scoring(Kind[Scored, Score]):
    metric: ClassVar[str] = "spearman"
    metrics: ClassVar[tuple[str, ...]] = ("spearman", "pearson", "mean_squared_error")
    fields: ClassVar[tuple[str, ...]] = ("score",)

    # Of the scores that are learned; a model that is finished answers scores themselves.
    _mean, _deviation = 0.0, 1.0

    @classmethod
    def make_head(cls, examples: Sequence[Scored], options: FinetuningOptions) -> Head:
        return Head("sequence", ("score",), "regression", options.dropout)

    def start(self, model: Any, examples: Sequence[Scored], *, is_fresh: bool) -> None:
        scores = np.array([one.score for one in examples], np.float64)
        self._mean, self._deviation = float(scores.mean()), float(scores.std()) or 1.0
        if not is_fresh:
            _scale_head(model, 1 / self._deviation, -self._mean / self._deviation)

    def finish(self, model: Any) -> None:
        _scale_head(model, self._deviation, self._mean)
        self._mean, self._deviation = 0.0, 1.0

    def encode(self, examples: Sequence[Scored]) -> Items:
        encodings = self.encode_texts([pair_up(one.text, one.pair) for one in examples])
        scores = np.array([self._mean if one.score is None else one.score for one in examples], np.float64)
        targets = ((scores - self._mean) / self._deviation).astype(np.float32)
        return lay_items([[one] for one in encodings], range(len(examples)), targets=targets)

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        assert batch.targets is not None
        errors = (self.outputs(model, batch, device)[:, 0].float() - to_tensor(batch.targets, device)) ** 2
        total = (errors * to_tensor(batch.real, device)).sum()
        return {self.loss_name: LossPart(total, int(batch.real.sum()), None)}

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        scores: Tensor = model.task_head(encode_batch(model, batch, device))  # (B, 1)
        return scores

    def interpret(
        self, examples: Sequence[Scored], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Score]:
        return [Score(float(row[0]) * self._deviation + self._mean) for row in outputs]

    def measure(self, examples: Sequence[Scored], predictions: Sequence[Score]) -> dict[str, float]:
        gold, found = np.array([one.score for one in examples]), np.array([one.score for one in predictions])
        return {
            "spearman": spearman(gold, found),
            "pearson": pearson(gold, found),
            "mean_squared_error": float(((gold - found) ** 2).mean()),
        }

    def find_mistake(self, example: Scored, prediction: Score) -> Mistake | None:
        assert example.score is not None
        text = example.text if example.pair is None else f"{example.text} ⧸ {example.pair}"
        error = abs(example.score - prediction.score)
        return Mistake(text, f"{example.score:g}", f"{prediction.score:.3g}", error)

    def to_record(self, example: Scored, prediction: Score) -> dict[str, Any]:
        return {"score": prediction.score}


def _scale_head(model: Any, factor: float, shift: float) -> None:
    """Let the head answer `factor` times as much, and `shift` more."""
    import torch

    output = model.task_head.output
    with torch.no_grad():
        output.weight.copy_(output.weight.double() * factor)
        output.bias.copy_(output.bias.double() * factor + shift)
