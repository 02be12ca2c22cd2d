"""How good predictions are. All figures are shares from 0 to 1 (correlations from -1); NaN is what is not defined.

Labels are whole numbers or texts. Where an example may have several, gold and predicted are arrays of booleans, a row
an example and a column a label. Shapes: N examples, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malmoi.tasks.answer_metrics import best_threshold, normalize_answer, score_answers, score_answers_or_none
from malmoi.tasks.entities import EntityScores, find_entities, score_entities

__all__ = [
    "EntityScores",
    "accuracy",
    "best_threshold",
    "confusion",
    "f1",
    "find_entities",
    "matthews",
    "normalize_answer",
    "pearson",
    "score_answers",
    "score_answers_or_none",
    "score_entities",
    "spearman",
]


def accuracy(gold: ArrayLike, predicted: ArrayLike) -> float:
    """The share of examples that are right; of those with several labels, all have to be."""
    is_right = np.equal(*_pair(gold, predicted))  # (N,) or (N, L)
    if is_right.ndim == 2:
        is_right = is_right.all(axis=1)
    return float(is_right.mean()) if len(is_right) else float("nan")


def f1(gold: ArrayLike, predicted: ArrayLike, average: Literal["macro", "micro"]) -> float:
    """The F1 of all labels together (micro) or the mean over labels (macro), of which an absent one counts 0.

    The labels are those that occur in gold or predicted; with several labels an example, the columns.
    """
    one, two = _pair(gold, predicted)
    if one.ndim == 1:
        labels = np.unique(np.concatenate([one, two]))
        one, two = one[:, None] == labels, two[:, None] == labels  # (N, L)
    one, two = one.astype(bool), two.astype(bool)
    right = (one & two).sum(axis=0)  # (L,)
    either = one.sum(axis=0) + two.sum(axis=0)  # (L,)
    if average == "micro":
        right, either = right.sum(keepdims=True), either.sum(keepdims=True)
    scores = np.divide(2.0 * right, either, out=np.zeros(len(right)), where=either > 0)
    return float(scores.mean()) if len(scores) else float("nan")


def matthews(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Matthews' correlation, for any number of labels; 0 where one side has one label only."""
    gold, predicted = _pair(gold, predicted)
    labels = np.unique(np.concatenate([gold, predicted]))
    table = confusion(gold, predicted, labels).astype(np.float64)  # (L, L)
    count = table.sum()
    gold_counts, predicted_counts = table.sum(axis=1), table.sum(axis=0)
    covariance = table.trace() * count - gold_counts @ predicted_counts
    scale = (count**2 - gold_counts @ gold_counts) * (count**2 - predicted_counts @ predicted_counts)
    return float(covariance / np.sqrt(scale)) if scale > 0 else 0.0


def confusion(gold: ArrayLike, predicted: ArrayLike, labels: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """How often each label was taken for each: a row a gold label, a column a predicted one, ordered as `labels`."""
    gold, predicted = _pair(gold, predicted)
    order = {label: number for number, label in enumerate(np.asarray(labels).tolist())}
    table = np.zeros((len(order), len(order)), np.int64)
    rows = [order[label] for label in gold.tolist()]
    columns = [order[label] for label in predicted.tolist()]
    np.add.at(table, (rows, columns), 1)
    return table


def pearson(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Pearson's correlation; NaN where one side is constant or there are fewer than two examples."""
    x, y = (side.astype(np.float64) for side in _pair(gold, predicted))
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    x, y = _direction(x), _direction(y)
    return float(np.clip(x @ y, -1.0, 1.0))


def spearman(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman's correlation: Pearson's of the ranks, of which equal values share the mean."""
    gold, predicted = _pair(gold, predicted)
    if np.isnan(gold.astype(np.float64)).any() or np.isnan(predicted.astype(np.float64)).any():
        return float("nan")
    return pearson(_rank(gold), _rank(predicted))


def _direction(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Made of size about one before and after the mean is taken off, so that no square over- or underflows.
    values = values / np.abs(values).max()
    values = values - values.mean()
    values = values / np.abs(values).max()
    return values / np.sqrt(values @ values)


def _rank(values: NDArray[Any]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_ranks = last - (counts - 1) / 2
    return np.asarray(mean_ranks[inverse], np.float64)


def _pair(gold: ArrayLike, predicted: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    one, two = np.asarray(gold), np.asarray(predicted)
    if one.shape != two.shape:
        raise ValueError(f"gold is of the shape {one.shape}, predicted of {two.shape}; they have to be alike")
    return one, two
