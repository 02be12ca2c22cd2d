"""Hidden words, and the next sentence where examples are pairs: the objective of BERT."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from malmoi.blocks.output import EncoderOutput
from malmoi.blocks.word_loss import sum_word_loss
from malmoi.objectives.examples import Examples
from malmoi.objectives.task import LossPart, Objective, Task
from malmoi.values import IGNORED, Batch


class PretrainedEncoder(Protocol):
    """What these losses ask of a model."""

    def __call__(
        self, *, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor
    ) -> EncoderOutput: ...

    def word_features(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """What the logits of the vocabulary are made of: features, output matrix, bias."""

    def next_sentence_logits(self, pooled: Tensor) -> Tensor: ...


def count_predictions(batch: Batch) -> dict[str, int]:
    """How many predictions each task makes on a batch; known before the model has run."""
    counts = {"mlm": int(np.count_nonzero(batch.labels != IGNORED))}
    if batch.next_sentence_label is not None:
        counts["nsp"] = len(batch.next_sentence_label)
    return counts


def sum_losses(model: PretrainedEncoder, batch: Batch, device: torch.device) -> dict[str, LossPart]:
    """The summed loss of each task. Logits are made only where something is to be predicted."""
    output = model(
        input_ids=_tensor(batch.input_ids, device),
        attention_mask=None if batch.attention_mask is None else _tensor(batch.attention_mask, device),
        token_type_ids=_tensor(batch.token_type_ids, device),
    )
    flat_labels = batch.labels.reshape(-1)
    places = np.flatnonzero(flat_labels != IGNORED)  # (M,)
    hidden = output.last_hidden_state.flatten(0, 1)[_tensor(places, device)]  # (M, hidden)
    labels = _tensor(flat_labels[places], device)
    total, right = sum_word_loss(*model.word_features(hidden), labels)
    parts = {"mlm": LossPart(total, len(places), right)}
    if batch.next_sentence_label is not None:
        answers = _tensor(batch.next_sentence_label, device)
        assert output.pooler_output is not None
        logits = model.next_sentence_logits(output.pooler_output).float()
        parts["nsp"] = LossPart(
            torch.nn.functional.cross_entropy(logits, answers, reduction="sum"),
            len(answers),
            (logits.argmax(dim=1) == answers).sum(),
        )
    return parts


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)


_TASK = Task(count_predictions, sum_losses)
MASKED = Objective(Examples, _TASK, trains=frozenset({"word_head"}))
MASKED_PAIRS = Objective(Examples, _TASK, trains=frozenset({"word_head", "pooler", "next_sentence_head"}))
