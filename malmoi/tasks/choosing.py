"""choose: a prompt and several ways to go on, of which one is right.

B prompts, C choices of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.features.engine import HeadedEngine
from malmoi.objectives.task import LossPart
from malmoi.tasks.examples import Choice
from malmoi.tasks.kind import Kind, Mistake, softmax
from malmoi.tasks.metrics import accuracy
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Chosen
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Choosing(Kind[Choice, Chosen]):
    metric: ClassVar[str] = "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    fields: ClassVar[tuple[str, ...]] = ("index", "choice", "scores")

    @classmethod
    def make_head(cls, examples: Sequence[Choice], options: FinetuningOptions) -> Head:
        return Head("choice", (), None, options.dropout)

    def encode(self, examples: Sequence[Choice]) -> Items:
        encodings = iter(self.encode_texts([(one.prompt, choice) for one in examples for choice in one.choices]))
        sequences = [[next(encodings) for _ in one.choices] for one in examples]
        answers = np.array([IGNORED if one.answer is None else one.answer for one in examples], np.int64)
        return lay_items(sequences, range(len(examples)), targets=answers)

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        from torch.nn import functional

        logits = self.outputs(model, batch, device).float()
        assert batch.targets is not None
        targets = to_tensor(np.where(batch.real, batch.targets, IGNORED), device)
        total = functional.cross_entropy(logits, targets, reduction="sum")
        return {self.loss_name: LossPart(total, int(batch.real.sum()), (logits.argmax(dim=1) == targets).sum())}

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        """(B, C); choices that a prompt does not have are out of the question."""
        import torch

        logits: Tensor = model.task_head(encode_batch(model, batch, device)).view(batch.present.shape)
        return logits.masked_fill(~to_tensor(batch.present, device), torch.finfo(logits.dtype).min)

    def compute(self, engine: HeadedEngine, batch: TaskBatch) -> NDArray[np.float32]:
        return super().compute(engine, batch).reshape(batch.present.shape)

    def interpret(
        self, examples: Sequence[Choice], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Chosen]:
        made = []
        for example, row in zip(examples, outputs, strict=True):
            shares = softmax(row[: len(example.choices)])
            best = int(shares.argmax())
            made.append(Chosen(best, example.choices[best], tuple(shares.tolist())))
        return made

    def measure(self, examples: Sequence[Choice], predictions: Sequence[Chosen]) -> dict[str, float]:
        return {"accuracy": accuracy(np.array([one.answer for one in examples]), [one.index for one in predictions])}

    def find_mistake(self, example: Choice, prediction: Chosen) -> Mistake | None:
        if example.answer is None or example.answer == prediction.index:
            return None
        share = prediction.scores[prediction.index]
        return Mistake(example.prompt, example.choices[example.answer], f"{prediction.choice} {share:.0%}", share)

    def to_record(self, example: Choice, prediction: Chosen) -> dict[str, Any]:
        return {"index": prediction.index, "choice": prediction.choice, "scores": list(prediction.scores)}
