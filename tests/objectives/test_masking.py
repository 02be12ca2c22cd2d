from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malmoi.data.randomness import draw_key, draw_uniform
from malmoi.objectives.masking import Masking, choose_words, mask_tokens
from malmoi.values import IGNORED

MASK, VOCABULARY = 4, 1000
MASKING = Masking(share=0.15, max_predictions=20, mask_id=MASK, vocab_size=VOCABULARY)


def make_rows(lengths, width=128):
    """Sequences [CLS] text … [SEP] of ids from 10 on, padded with 0."""
    rows = np.zeros((len(lengths), width), dtype=np.int64)
    maskable = np.zeros(rows.shape, dtype=bool)
    for row, length in enumerate(lengths):
        rows[row, 1 : length - 1] = 10 + np.arange(length - 2) % (VOCABULARY - 10)
        rows[row, [0, length - 1]] = 2, 3
        maskable[row, 1 : length - 1] = True
    return rows, maskable, np.array(lengths)


def mask(lengths, word_starts=None, masking=MASKING, seed=0):
    rows, maskable, lengths = make_rows(lengths)
    keys = draw_key(seed, np.arange(len(lengths)))
    return rows, *mask_tokens(rows, maskable, word_starts, lengths, keys, masking)


def test_the_number_of_predictions_is_the_published_one():
    lengths = [4, 5, 10, 23, 30, 50, 63, 100, 127, 128]
    _, _, labels = mask(lengths)
    # round() is the builder's: to the even neighbour at a half.
    assert (labels != IGNORED).sum(axis=1).tolist() == [max(1, min(20, round(length * 0.15))) for length in lengths]


def test_labels_are_the_original_tokens_and_nothing_else_changes():
    rows, corrupted, labels = mask([128] * 50)
    chosen = labels != IGNORED
    assert (labels[chosen] == rows[chosen]).all()
    assert (corrupted[~chosen] == rows[~chosen]).all()
    assert (rows[chosen] >= 10).all()  # neither [CLS], [SEP] nor padding


def test_shares_are_80_10_10_and_random_tokens_come_from_the_whole_vocabulary():
    rows, corrupted, labels = mask([128] * 5000)
    chosen = labels != IGNORED
    fate = corrupted[chosen]
    masked, kept = fate == MASK, fate == rows[chosen]
    drawn = fate[~masked & ~kept]
    assert abs(masked.mean() - 0.8) < 0.01
    assert abs(kept.mean() - 0.1) < 0.01
    assert len(np.unique(drawn)) > 0.99 * VOCABULARY
    assert drawn.min() == 0 and drawn.max() == VOCABULARY - 1


def test_every_position_is_equally_likely():
    _, _, labels = mask([128] * 20_000)
    share = (labels != IGNORED)[:, 1:127].mean(axis=0)
    assert abs(share - 19 / 126).max() < 5 * (0.15 * 0.85 / 20_000) ** 0.5


def test_a_mask_is_a_function_of_its_key_alone():
    _, together, _ = mask([40, 80, 128])
    rows, maskable, lengths = make_rows([80])
    alone, _ = mask_tokens(rows, maskable, None, lengths, draw_key(0, np.array([1])), MASKING)
    assert (alone[0] == together[1]).all()
    assert (mask([128], seed=1)[1] != mask([128], seed=0)[1]).any()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 30), st.integers(0, 2**32))
def test_whole_words_are_chosen_as_the_greedy_loop_chooses_them(sizes, budget, seed):
    words = np.repeat(np.arange(len(sizes)), sizes)[None]
    key = draw_key(seed, np.array([0]))
    chosen = choose_words(words, np.array([budget]), key)[0]

    expected, left = set(), budget
    for word in np.argsort(draw_uniform(key[:, None], np.arange(len(sizes)))[0]):
        if sizes[word] <= left:
            expected.add(word)
            left -= sizes[word]
    assert {word for word, is_chosen in zip(words[0], chosen, strict=True) if is_chosen} == expected
    assert chosen.sum() == budget - left  # whole words only


@pytest.mark.parametrize("longest", [1, 2, 4])
def test_whole_word_masking_keeps_the_shares(longest):
    random = np.random.default_rng(0)
    starts = random.random((4000, 128)) < 1 / longest
    rows, corrupted, labels = mask([128] * 4000, starts)
    chosen = labels != IGNORED
    assert abs(chosen.sum() / (4000 * 128) - 0.15) < 0.003
    assert abs((corrupted[chosen] == MASK).mean() - 0.8) < 0.01
    assert abs((corrupted[chosen] == rows[chosen]).mean() - 0.1) < 0.01
    inside = ~starts[:, 2:127]  # a position that continues the word of the one before it
    assert (chosen[:, 2:127][inside] == chosen[:, 1:126][inside]).all()


def test_a_word_larger_than_the_budget_is_passed_over():
    words = np.array([[0, 0, 0, 0, 0, -1]])
    assert not choose_words(words, np.array([2]), draw_key(0, np.array([0]))).any()
    assert not choose_words(np.full((1, 4), -1), np.array([2]), draw_key(0, np.array([0]))).any()


def starts_of(*sizes, width=128):
    """Words of these sizes, one after the other from the second position on."""
    starts = np.zeros((1, width), dtype=bool)
    starts[0, 1 + np.concatenate([[0], np.cumsum(sizes)[:-1]])] = True
    return starts


@pytest.mark.parametrize("sizes", [(126,), (60, 66), (5, 60, 61), (30, 4, 92)])
def test_words_too_large_are_taken_apart_where_the_others_cannot_fill_the_budget(sizes):
    """As in Thai, where a word is what stands between two spaces."""
    rows = 3000
    _, _, labels = mask([128] * rows, np.repeat(starts_of(*sizes), rows, axis=0))
    chosen = labels != IGNORED
    assert chosen.any(axis=1).all() and abs(chosen.mean() - 0.15) < 0.005
    bounds = 1 + np.concatenate([[0], np.cumsum(sizes)])
    for begin, end in pairwise(bounds.tolist()):
        together = chosen[:, begin:end].all(axis=1) == chosen[:, begin:end].any(axis=1)
        assert together.all() == (end - begin <= 19)  # what fits stays whole


def test_a_large_word_stays_whole_where_others_fill_the_budget():
    sizes = (80, *[2] * 23)
    _, _, labels = mask([128] * 500, np.repeat(starts_of(*sizes), 500, axis=0))
    chosen = labels != IGNORED
    assert not chosen[:, 1:81].any() and (chosen.sum(axis=1) == 18).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 19), min_size=10, max_size=40), st.integers(0, 2**32))
def test_where_words_fit_nothing_is_taken_apart(sizes, seed):
    sizes = [size for number, size in enumerate(sizes) if sum(sizes[: number + 1]) <= 126]
    sizes[-1] += max(0, 126 - sum(sizes)) if 126 - sum(sizes) + sizes[-1] <= 19 else 0
    starts = starts_of(*sizes)
    rows, maskable, _ = make_rows([sum(sizes) + 2])
    keys = draw_key(seed, np.array([0]))
    _, labels = mask_tokens(rows, maskable, starts, np.array([128]), keys, MASKING)
    words = np.where(maskable, np.cumsum(starts, axis=1) - 1, -1)
    expected = choose_words(words, np.array([19]), draw_key(0, keys, 0))
    if sum(sizes) >= 19:
        assert ((labels != IGNORED) == expected).all()
