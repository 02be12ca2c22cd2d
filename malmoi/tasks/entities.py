"""Entities in a sequence of tags, and how many were found: exact span and type, as seqeval counts by default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Entity(NamedTuple):
    """A type, and the first and the last word."""

    type: str
    first: int
    last: int


class EntityScores(NamedTuple):
    precision: float
    recall: float
    f1: float


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of IOB2 tags (also with E- and S-). A broken sequence is read as conlleval does.

    An I- that follows nothing, or another type, begins an entity.
    """
    entities = []
    mark, kind, first = "O", "_", 0
    for number, tag in enumerate([*tags, "O"]):
        next_mark, next_kind = tag[0], tag[1:].split("-", maxsplit=1)[-1] or "_"
        is_other = kind != next_kind
        if mark in "ES" or (mark in "BI" and next_mark in "BSO") or (mark != "O" and is_other):
            entities.append(Entity(kind, first, number - 1))
        if next_mark in "BS" or (next_mark in "IE" and mark in "OES") or (next_mark != "O" and is_other):
            first = number
        mark, kind = next_mark, next_kind
    return entities


def score_entities(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    average: Literal["micro", "macro"] = "micro",
) -> EntityScores:
    """Precision, recall and F1 over the entities of all sentences together, or their means over the types (macro)."""
    right, in_gold, in_predicted = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(f"{len(predicted_tags)} tags predicted for {len(gold_tags)} words")
        gold_entities, predicted_entities = set(find_entities(gold_tags)), set(find_entities(predicted_tags))
        in_gold.update(entity.type for entity in gold_entities)
        in_predicted.update(entity.type for entity in predicted_entities)
        right.update(entity.type for entity in gold_entities & predicted_entities)
    if average == "micro":
        return _scores(right.total(), in_gold.total(), in_predicted.total())
    types = in_gold.keys() | in_predicted.keys()
    if not types:
        return EntityScores(0.0, 0.0, 0.0)
    scores = [_scores(right[kind], in_gold[kind], in_predicted[kind]) for kind in sorted(types)]
    precision, recall, f1 = (sum(column) / len(scores) for column in zip(*scores, strict=True))
    return EntityScores(precision, recall, f1)


def _scores(right: int, in_gold: int, in_predicted: int) -> EntityScores:
    precision = right / in_predicted if in_predicted else 0.0
    recall = right / in_gold if in_gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return EntityScores(precision, recall, f1)
