"""Entities in a sequence of tags, and how many were found: exact span and type, as seqeval counts by default."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

OUTSIDE = "O"
# Marks say where an entity begins and goes on (B-LOC, I-LOC), types only what a word belongs to (LOC, or O for none).
# Classes, such as parts of speech or numbers nobody has named, make no entities.
Scheme = Literal["marks", "types", "classes"]
_MARKED = re.compile(r"[BIESLUM](-.+)?")


class Entity(NamedTuple):
    """A type, and the first and the last word."""

    type: str
    first: int
    last: int


class EntityScores(NamedTuple):
    precision: float
    recall: float
    f1: float


def find_scheme(labels: Iterable[str]) -> Scheme:
    """What the tags of some data are. A stray one among marks changes nothing."""
    labels = set(labels)
    others = labels - {OUTSIDE}
    if 2 * sum(_MARKED.fullmatch(label) is not None for label in others) > len(others):
        return "marks"
    return "types" if OUTSIDE in labels else "classes"


def mark(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """The same tags with marks: words of one type that stand together are one entity, and classes make none."""
    if scheme == "marks":
        return list(tags)
    return [OUTSIDE if scheme == "classes" or tag == OUTSIDE else f"I-{tag}" for tag in tags]


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
