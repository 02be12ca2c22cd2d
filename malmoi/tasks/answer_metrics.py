"""Exact match and F1 of answers, as SQuAD 1.1 and 2.0 define them, as shares of 1 (their programs print per cent).

Gold is the texts of the answers of each question by its id, none where it cannot be answered; predicted is one text,
empty where the model says so.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

Gold = Mapping[str, Sequence[str]]

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation and English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def score_answers(gold: Gold, predicted: Mapping[str, str]) -> dict[str, float]:
    """SQuAD 1.1: exact match and F1, for each question with the gold answer that fits best. No prediction counts 0."""
    exact, f1 = 0.0, 0.0
    for id, answers in gold.items():
        if id in predicted:
            exact += _best(_exact, answers, predicted[id])
            f1 += _best(_overlap, answers, predicted[id])
    count = len(gold) or float("nan")
    return {"exact_match": exact / count, "f1": f1 / count}


def score_answers_or_none(
    gold: Gold,
    predicted: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """SQuAD 2.0, which has questions that cannot be answered. Questions without a prediction are left out.

    `no_answer` is how sure the model is that there is no answer: above the threshold its answer is not counted. With it
    come the best scores that any threshold gives, and those thresholds.
    """
    exact, f1 = _raw_scores(gold, predicted)
    answerable = [id for id in exact if gold[id]]
    impossible = [id for id in exact if not gold[id]]
    scores: dict[str, float] = {}
    for prefix, ids in (("", list(exact)), ("has_answer_", answerable), ("no_answer_", impossible)):
        if not ids and prefix:
            continue
        for name, raw in (("exact_match", exact), ("f1", f1)):
            counted = (
                float(not gold[id]) if no_answer is not None and no_answer[id] > threshold else raw[id] for id in ids
            )
            scores[prefix + name] = _mean(counted, len(ids))
    if no_answer is not None:
        for name, raw in (("exact_match", exact), ("f1", f1)):
            scores[f"best_{name}"], scores[f"best_{name}_threshold"] = _search(gold, predicted, raw, no_answer)
    return scores


def find_best_thresholds(gold: Gold, predicted: Mapping[str, str], no_answer: Mapping[str, float]) -> dict[str, float]:
    """The best scores that any threshold of `no_answer`, on whatever scale, gives; and those thresholds."""
    exact, f1 = _raw_scores(gold, predicted)
    # SQuAD's program takes shares, and 0 for the threshold at which nothing is answered.
    nothing = min(0.0, min(no_answer.values(), default=0.0) - 1.0)
    scores: dict[str, float] = {}
    for name, raw in (("exact_match", exact), ("f1", f1)):
        best, scores[f"best_{name}_threshold"] = _search(gold, predicted, raw, no_answer, nothing)
        scores[f"best_{name}"] = best
    return scores


def matches_exactly(answers: Sequence[str], predicted: str) -> bool:
    """Whether SQuAD counts the text as an exact match; no answers, or none but articles, are matched by no text."""
    left = [answer for answer in answers if normalize_answer(answer)] or [""]
    return bool(_best(_exact, left, predicted))


def best_threshold(gold: Gold, predicted: Mapping[str, str], no_answer: Mapping[str, float]) -> tuple[float, float]:
    """The best F1 that SQuAD 2.0's search finds, and the threshold of `no_answer` that gives it."""
    _, f1 = _raw_scores(gold, predicted)
    return _search(gold, predicted, f1, no_answer)


def _raw_scores(gold: Gold, predicted: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    exact, f1 = {}, {}
    for id, answers in gold.items():
        if id in predicted:
            # An answer of nothing but articles and punctuation is none.
            left = [answer for answer in answers if normalize_answer(answer)] or [""]
            exact[id] = _best(_exact, left, predicted[id])
            f1[id] = _best(_overlap_or_none, left, predicted[id])
    return exact, f1


def _search(
    gold: Gold,
    predicted: Mapping[str, str],
    raw: Mapping[str, float],
    no_answer: Mapping[str, float],
    nothing: float = 0.0,
) -> tuple[float, float]:
    """Go from answering nothing to answering all, the surest first, and keep the place with the best sum."""
    total = best = float(sum(not answers for answers in gold.values()))
    threshold = nothing
    for id in sorted(no_answer, key=no_answer.__getitem__):
        if id not in raw:
            continue
        if gold[id]:
            total += raw[id]
        elif predicted[id]:
            total -= 1
        if total > best:
            best, threshold = total, no_answer[id]
    return best / (len(raw) or float("nan")), threshold


def _best(score: Callable[[str, str], float], answers: Sequence[str], predicted: str) -> float:
    return max((score(answer, predicted) for answer in answers), default=0.0)


def _exact(gold: str, predicted: str) -> float:
    return float(normalize_answer(gold) == normalize_answer(predicted))


def _overlap(gold: str, predicted: str) -> float:
    """F1 over the words that gold and predicted have in common."""
    gold_words, predicted_words = normalize_answer(gold).split(), normalize_answer(predicted).split()
    same = (Counter(gold_words) & Counter(predicted_words)).total()
    if not same:
        return 0.0
    precision, recall = same / len(predicted_words), same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def _overlap_or_none(gold: str, predicted: str) -> float:
    """The same, but two empty answers agree."""
    if not normalize_answer(gold) and not normalize_answer(predicted):
        return 1.0
    return _overlap(gold, predicted)


def _mean(values: Iterable[float], count: int) -> float:
    return sum(values) / count if count else float("nan")
