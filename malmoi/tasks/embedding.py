"""embed: vectors of texts, alike where the texts are. Learned from pairs with scores, or from pairs that are all alike.

Pairs with scores: the cosine of the two vectors is to be the score. Pairs without: among all second texts of the batch
the vector of a first text is to be nearest to that of its own. B pairs, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.checkpoint.sentence_modules import SentenceModules
from malmoi.errors import MalmoiError
from malmoi.features.engine import HeadedEngine
from malmoi.features.pooling import finish_vectors, pool_tokens, weigh_tokens
from malmoi.objectives.task import LossPart
from malmoi.tasks.examples import Scored
from malmoi.tasks.kind import Kind, Mistake
from malmoi.tasks.metrics import pearson, spearman
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Similarity
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_ROWS_AT_ONCE = 1024


class Embedding(Kind[Scored, Similarity]):
    """Pairs with scores."""

    metric: ClassVar[str] = "spearman"
    metrics: ClassVar[tuple[str, ...]] = ("spearman", "pearson")
    fields: ClassVar[tuple[str, ...]] = ("score",)
    # The score of texts that mean the same, taken from the examples to learn from.
    highest = 1.0
    scale = 20.0
    # How a text becomes a vector; cosines are the same whether or not vectors have length one already.
    sentence = SentenceModules(normalize=True)

    def use_folder(self, sentence: SentenceModules | None) -> None:
        """Make vectors as the model's folder says, which may say nothing."""
        if sentence is not None and sentence.unsupported is not None:
            raise MalmoiError(f"{sentence.unsupported}; so it cannot compare or learn vectors.")
        self.sentence = replace(sentence or self.sentence, max_seq_length=self.seq_len)

    @classmethod
    def make_head(cls, examples: Sequence[Scored], options: FinetuningOptions) -> None:
        return None

    def encode(self, examples: Sequence[Scored]) -> Items:
        for one in examples:
            if one.pair is None:
                raise MalmoiError(
                    f"{one.place}: vectors are learned and judged on pairs; give the second text, --pair."
                )
        texts = [text for one in examples for text in (one.text, one.pair or "")]
        encodings = self.encode_texts(texts)
        sequences = [encodings[place : place + 2] for place in range(0, len(encodings), 2)]
        scores = np.array([0.0 if one.score is None else one.score for one in examples], np.float32)
        return lay_items(sequences, range(len(examples)), targets=scores)

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        assert batch.targets is not None
        first, second = self.outputs(model, batch, device).float().unbind(dim=1)
        errors = ((first * second).sum(dim=1) - to_tensor(batch.targets, device) / self.highest) ** 2
        total = (errors * to_tensor(batch.real, device)).sum()
        return {self.loss_name: LossPart(total, int(batch.real.sum()), None)}

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        """(B, 2, hidden): the vectors of both texts, of length one."""
        from torch.nn import functional

        hidden = encode_batch(model, batch, device).last_hidden_state  # (B · 2, T, hidden)
        pooled = _pool(hidden, batch.attention_mask, self.sentence.pool)
        return functional.normalize(pooled, dim=-1).view(len(batch.real), 2, -1)

    def compute(self, engine: HeadedEngine, batch: TaskBatch) -> NDArray[np.float32]:
        ids, mask, last = batch.input_ids, batch.attention_mask, engine.num_hidden_layers
        hidden = engine.run(ids, batch.token_type_ids, mask, [last], False).hidden_states[last]
        lengths = np.full(len(ids), ids.shape[1]) if mask is None else mask.sum(axis=1)
        vectors = finish_vectors(pool_tokens(hidden, lengths, self.sentence.pool), True, None)
        return vectors.reshape(len(batch.real), 2, -1)

    def interpret(
        self, examples: Sequence[Scored], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Similarity]:
        return [Similarity(float(first @ second)) for first, second in outputs]

    def measure(self, examples: Sequence[Scored], predictions: Sequence[Similarity]) -> dict[str, float]:
        gold, found = np.array([one.score for one in examples]), np.array([one.score for one in predictions])
        return {"spearman": spearman(gold, found), "pearson": pearson(gold, found)}

    def find_mistake(self, example: Scored, prediction: Similarity) -> Mistake | None:
        expected = 1.0 if example.score is None else example.score / self.highest
        error = abs(expected - prediction.score)
        return Mistake(f"{example.text} ⧸ {example.pair}", f"{expected:.2f}", f"{prediction.score:.2f}", error)

    def to_record(self, example: Scored, prediction: Similarity) -> dict[str, Any]:
        return {"score": prediction.score}


def _pool(hidden: Tensor, mask: NDArray[np.bool_] | None, pool: str) -> Tensor:
    """What `features.pooling` does, in a way that a gradient can follow: (B, T, hidden) → (B, hidden)"""
    import torch

    if pool == "cls":
        return hidden[:, 0]
    if pool == "max":
        shown = hidden if mask is None else hidden.masked_fill(~to_tensor(mask, hidden.device)[..., None], -torch.inf)
        return shown.amax(dim=1)
    lengths = np.full(len(hidden), hidden.shape[1]) if mask is None else mask.sum(axis=1)
    weights = to_tensor(weigh_tokens(lengths, hidden.shape[1], pool), hidden.device).to(hidden.dtype)
    return torch.einsum("bt,bth->bh", weights, hidden)


class Contrast(Embedding):
    """Pairs that are alike, each against all others of its batch."""

    metric: ClassVar[str] = "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "mean_reciprocal_rank")

    def compares_examples(self) -> bool:
        return True

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        import torch
        from torch.nn import functional

        first, second = self.outputs(model, batch, device).float().unbind(dim=1)
        real = to_tensor(batch.real, device)
        cosines = (first @ second.T * self.scale).masked_fill(~real, torch.finfo(torch.float32).min)  # (B, B)
        own = torch.arange(len(real), device=device).masked_fill(~real, IGNORED)
        total = functional.cross_entropy(cosines, own, reduction="sum")
        return {self.loss_name: LossPart(total, int(batch.real.sum()), (cosines.argmax(dim=1) == own).sum())}

    def interpret(
        self, examples: Sequence[Scored], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Similarity]:
        first, second = np.stack(outputs).transpose(1, 0, 2)  # each (N, hidden)
        made = []
        for begin in range(0, len(first), _ROWS_AT_ONCE):
            cosines = first[begin : begin + _ROWS_AT_ONCE] @ second.T
            own = cosines[np.arange(len(cosines)), np.arange(begin, begin + len(cosines))]
            ranks = (cosines > own[:, None]).sum(axis=1) + 1
            made += [Similarity(float(one), int(rank)) for one, rank in zip(own, ranks, strict=True)]
        return made

    def measure(self, examples: Sequence[Scored], predictions: Sequence[Similarity]) -> dict[str, float]:
        ranks = np.array([one.rank for one in predictions], np.float64)
        return {"accuracy": float((ranks == 1).mean()), "mean_reciprocal_rank": float((1 / ranks).mean())}
