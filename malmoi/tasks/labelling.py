"""classify and pair: a text, or two, and the label they have; with --multi-label any number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.objectives.task import LossPart
from malmoi.tasks.encoding import pair_up
from malmoi.tasks.examples import Classified
from malmoi.tasks.kind import Kind, Mistake, softmax
from malmoi.tasks.metrics import accuracy, confusion, f1, matthews
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Classification
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.tasks.reading import find_labels
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_WEIGHTS = "class_weights"


class Labelling(Kind[Classified, Classification]):
    """One label of several."""

    metric: ClassVar[str] = "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "matthews")
    fields: ClassVar[tuple[str, ...]] = ("label", "score", "scores")

    @classmethod
    def make_head(cls, examples: Sequence[Classified], options: FinetuningOptions) -> Head:
        labels = tuple(find_labels(examples))
        settings = {}
        if options.class_weights == "balanced":
            counts = {label: sum(label in (one.labels or ()) for one in examples) for label in labels}
            settings[_WEIGHTS] = [len(examples) / (len(labels) * counts[label]) for label in labels]
        return Head("sequence", labels, cls._problem(), options.dropout, settings=settings)

    @classmethod
    def _problem(cls) -> Any:
        return "single_label_classification"

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.head is not None
        return self.head.labels

    def encode(self, examples: Sequence[Classified]) -> Items:
        encodings = self.encode_texts([pair_up(one.text, one.pair) for one in examples])
        return lay_items([[one] for one in encodings], range(len(examples)), targets=self._targets(examples))

    def _targets(self, examples: Sequence[Classified]) -> NDArray[Any]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        return np.array([numbers[one.labels[0]] if one.labels else IGNORED for one in examples], np.int64)

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        from torch.nn import functional

        logits = self.outputs(model, batch, device).float()
        assert batch.targets is not None
        targets = to_tensor(np.where(batch.real, batch.targets, IGNORED), device)
        total = functional.cross_entropy(logits, targets, weight=self._weights(device), reduction="sum")
        return {self.loss_name: LossPart(total, int(batch.real.sum()), (logits.argmax(dim=1) == targets).sum())}

    def _weights(self, device: torch.device) -> Tensor | None:
        import torch

        weights = None if self.head is None else self.head.settings.get(_WEIGHTS)
        return None if weights is None else torch.tensor(weights, device=device)

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        logits: Tensor = model.task_head(encode_batch(model, batch, device))  # (B, labels)
        return logits

    def interpret(
        self, examples: Sequence[Classified], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Classification]:
        shares = softmax(np.stack(outputs))
        return [
            Classification((self.labels[int(row.argmax())],), dict(zip(self.labels, row.tolist(), strict=True)))
            for row in shares
        ]

    def measure(self, examples: Sequence[Classified], predictions: Sequence[Classification]) -> dict[str, float]:
        gold = np.array([(one.labels or ("",))[0] for one in examples])
        found = np.array([one.label for one in predictions])
        return {
            "accuracy": accuracy(gold, found),
            "macro_f1": f1(gold, found, "macro"),
            "matthews": matthews(gold, found),
        }

    def confuse(
        self, examples: Sequence[Classified], predictions: Sequence[Classification]
    ) -> tuple[list[str], NDArray[np.int64]] | None:
        gold = [(one.labels or ("",))[0] for one in examples]
        return list(self.labels), confusion(gold, [one.label for one in predictions], self.labels)

    def find_mistake(self, example: Classified, prediction: Classification) -> Mistake | None:
        expected = example.labels or ()
        if set(expected) == set(prediction.labels):
            return None
        text = example.text if example.pair is None else f"{example.text} ⧸ {example.pair}"
        sure = max((prediction.scores[label] for label in prediction.labels), default=1.0)
        return Mistake(text, ", ".join(expected) or "none", _show(prediction), sure)

    def to_record(self, example: Classified, prediction: Classification) -> dict[str, Any]:
        return {"label": prediction.label, "score": prediction.scores[prediction.label], "scores": prediction.scores}


class MultiLabelling(Labelling):
    """Any number of labels, each judged for itself."""

    metric: ClassVar[str] = "micro_f1"
    metrics: ClassVar[tuple[str, ...]] = ("micro_f1", "macro_f1", "accuracy")
    fields: ClassVar[tuple[str, ...]] = ("labels", "scores")

    @classmethod
    def _problem(cls) -> Any:
        return "multi_label_classification"

    def _targets(self, examples: Sequence[Classified]) -> NDArray[Any]:
        return np.array([[label in (one.labels or ()) for label in self.labels] for one in examples], np.float32)

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        from torch.nn import functional

        logits = self.outputs(model, batch, device).float()
        assert batch.targets is not None
        targets, real = to_tensor(batch.targets, device), to_tensor(batch.real, device)
        each = functional.binary_cross_entropy_with_logits(
            logits, targets, weight=self._weights(device), reduction="none"
        )
        right = ((logits > 0) == (targets > 0.5)).all(dim=1) & real
        # The mean over labels, as transformers takes it, and the sum over examples.
        return {self.loss_name: LossPart((each.mean(dim=1) * real).sum(), int(batch.real.sum()), right.sum())}

    def interpret(
        self, examples: Sequence[Classified], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Classification]:
        shares = 1 / (1 + np.exp(-np.stack(outputs)))
        return [
            Classification(
                tuple(label for label, share in zip(self.labels, row, strict=True) if share > 0.5),
                dict(zip(self.labels, row.tolist(), strict=True)),
            )
            for row in shares
        ]

    def measure(self, examples: Sequence[Classified], predictions: Sequence[Classification]) -> dict[str, float]:
        gold = self._targets(examples).astype(np.int64)
        found = np.array([[label in one.labels for label in self.labels] for one in predictions], np.int64)
        return {
            "accuracy": accuracy(gold, found),
            "micro_f1": f1(gold, found, "micro"),
            "macro_f1": f1(gold, found, "macro"),
        }

    def confuse(
        self, examples: Sequence[Classified], predictions: Sequence[Classification]
    ) -> tuple[list[str], NDArray[np.int64]] | None:
        return None

    def to_record(self, example: Classified, prediction: Classification) -> dict[str, Any]:
        return {"labels": list(prediction.labels), "scores": prediction.scores}


def _show(prediction: Classification) -> str:
    return ", ".join(f"{label} {prediction.scores[label]:.0%}" for label in prediction.labels) or "none"
