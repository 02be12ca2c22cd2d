"""Pre-training learns what can be learned, and nothing where there is nothing: the experiments of
benchmarks/learning.py in miniature."""

import math
from itertools import pairwise

import pytest
from learning import shuffle_words
from small_worlds import (
    hide_everything,
    learn_progressions,
    learn_topics,
    leave,
    make_progressions,
    make_topics,
    shuffle_labels,
)

LN_24 = math.log(24)


def test_it_learns_which_segment_follows():
    learned = learn_topics(leave, steps=190, sentences=400)
    assert learned.accuracy["nsp"] > 0.9 and learned.loss["nsp"] < 0.4


def test_it_does_not_learn_labels_that_mean_nothing():
    control = learn_topics(shuffle_labels, steps=190, sentences=400)
    assert 0.35 < control.accuracy["nsp"] < 0.65 and 0.65 < control.loss["nsp"] < 0.8


def test_it_learns_to_count():
    assert learn_progressions(leave, steps=130, documents=60).loss["mlm"] < LN_24 - 0.3


def test_it_does_not_learn_what_it_cannot_see():
    control = learn_progressions(hide_everything, steps=50, documents=60)
    assert control.loss["mlm"] == pytest.approx(LN_24, abs=0.05) and control.accuracy["mlm"] < 0.08
    assert control.loss["nsp"] > 0.65


def test_the_corpora_are_what_they_are_said_to_be():
    one, other = ({word for line in topic for word in line.split()} for topic in make_topics(0, 300))
    assert len(one) == len(other) == 40 and len(one & other) == 20
    for document in make_progressions(0, 20):
        letters = [ord(letter) for line in document for letter in line.split()]
        assert len({(second - first) % 24 for first, second in pairwise(letters)}) == 1
    text = " = Title = \n\n one two three two \n four five . \n"
    shuffled = shuffle_words(text)
    assert sorted(shuffled.split()) == sorted(text.split()) and shuffled.startswith(" = Title = \n\n")
    assert [len(line.split()) for line in shuffled.split("\n")] == [len(line.split()) for line in text.split("\n")]
