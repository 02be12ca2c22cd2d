"""Metrics equal those everybody compares with: scikit-learn's, scipy's, seqeval's."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats
import seqeval.metrics
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from malmoi.tasks.metrics import (
    accuracy,
    confusion,
    f1,
    find_entities,
    matthews,
    pearson,
    score_entities,
    spearman,
)

LABELS = ["긍정", "부정", "중립"]
pairs_of_labels = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=30)
pairs_of_numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)
rows_of_flags = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=12)
# Few distinct values make many ties.
numbers = st.one_of(st.sampled_from([0.0, 0.5, 1.0, -3.0]), st.floats(-1e6, 1e6))
pairs_of_scores = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=30)
tags = st.sampled_from(["O", "B-PS", "I-PS", "B-LC", "I-LC", "E-LC", "S-PS", "B", "I", "I-a-b"])
sentences = st.lists(st.lists(st.tuples(tags, tags), max_size=8), min_size=1, max_size=5)


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(ours: float, theirs: float, tolerance: float = 1e-9) -> bool:
    return (math.isnan(ours) and math.isnan(theirs)) or abs(ours - theirs) <= tolerance


@given(st.one_of(pairs_of_labels, pairs_of_numbers))
def test_classification(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    assert same(accuracy(gold, predicted), sklearn.metrics.accuracy_score(gold, predicted))
    for average in ("macro", "micro"):
        theirs = sklearn.metrics.f1_score(gold, predicted, average=average, zero_division=0)
        assert same(f1(gold, predicted, average), theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(matthews(gold, predicted), sklearn.metrics.matthews_corrcoef(gold, predicted))
        labels = sorted(set(gold) | set(predicted))
        theirs = sklearn.metrics.confusion_matrix(gold, predicted, labels=labels)
    assert (confusion(gold, predicted, labels) == theirs).all()


@given(rows_of_flags)
def test_several_labels(rows):
    table = np.array(rows)
    gold, predicted = table[:, :3], table[:, 3:]
    assert same(accuracy(gold, predicted), sklearn.metrics.accuracy_score(gold, predicted))
    for average in ("macro", "micro"):
        theirs = sklearn.metrics.f1_score(gold, predicted, average=average, zero_division=0)
        assert same(f1(gold, predicted, average), theirs)


@given(pairs_of_scores)
def test_correlations(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = scipy.stats.spearmanr(gold, predicted).statistic
        assert same(spearman(gold, predicted), float(theirs), 1e-7)
        # With a spread near nothing theirs is made of rounding errors.
        is_constant = len(set(gold)) == 1 or len(set(predicted)) == 1
        if is_constant or min(np.std(gold), np.std(predicted)) > 1e-6:
            assert same(pearson(gold, predicted), float(scipy.stats.pearsonr(gold, predicted).statistic), 1e-6)


def test_correlations_at_the_edges():
    assert pearson([1, 2, 3], [2, 4, 6]) == spearman([1, 2, 3], [2, 4, 600]) == 1.0
    assert pearson([1e200, 2e200, 4e200], [1e-200, 2e-200, 4e-200]) == pytest.approx(1.0)
    assert math.isnan(pearson([0.1] * 7, range(7)))
    assert math.isnan(spearman([1], [1]))
    assert math.isnan(spearman([1, 2, float("nan")], [1, 2, 3]))


def test_classification_at_the_edges():
    assert matthews(["a", "a"], ["a", "a"]) == 0.0
    assert math.isnan(accuracy([], []))
    assert f1(np.zeros((3, 2), bool), np.zeros((3, 2), bool), "macro") == 0.0
    with pytest.raises(ValueError, match="alike"):
        accuracy([1, 2], [1])


@given(sentences)
@settings(max_examples=300)
def test_entities(pairs):
    gold = [[one for one, _ in sentence] for sentence in pairs]
    predicted = [[two for _, two in sentence] for sentence in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sentence in gold:
            assert find_entities(sentence) == seqeval.metrics.sequence_labeling.get_entities(sentence)
        ours = score_entities(gold, predicted)
        theirs = seqeval.metrics.precision_score, seqeval.metrics.recall_score, seqeval.metrics.f1_score
        for score, function in zip(ours, theirs, strict=True):
            assert same(score, function(gold, predicted))
        if any(map(find_entities, gold + predicted)):
            for score, function in zip(score_entities(gold, predicted, "macro"), theirs, strict=True):
                assert same(score, function(gold, predicted, average="macro"))


def test_broken_sequences():
    assert find_entities(["I-PS", "I-PS", "O", "I-LC", "I-PS", "B-PS", "I-PS"]) == [
        ("PS", 0, 1),
        ("LC", 3, 3),
        ("PS", 4, 4),
        ("PS", 5, 6),
    ]
    # What ends a sentence ends its entity.
    assert score_entities([["B-PS"], ["I-PS"]], [["B-PS"], ["B-PS"]]).f1 == 1.0
    assert score_entities([["O"]], [["O"]], "macro") == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="2 tags predicted for 1 words"):
        score_entities([["O"]], [["O", "O"]])
