from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import malmoi.objectives.pairs as pairs_module
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.pairs import Pairs, join_pairs, truncate_pairs, walk_documents
from malmoi.objectives.reference import ReferenceBuilder, read_documents

MAX = 61


@pytest.fixture(scope="module")
def pairs(english_store):
    return walk_documents(english_store, seed=0, walk=0, max_tokens=MAX, short_share=0.1)


def document_of(store, places):
    """The document that the token at each place belongs to."""
    return np.searchsorted(store.sentences[store.documents], places, side="right") - 1


def test_a_walk_uses_every_sentence_exactly_once(english_store, pairs):
    """What a random segment displaces is put back: A's and true B's together are the whole store, without overlap."""
    used = np.zeros(english_store.manifest.tokens, dtype=int)
    for begin, a, b, is_random in zip(pairs.a_begin, pairs.a_length, pairs.b_length, pairs.is_random, strict=True):
        used[begin : begin + (a if is_random else a + b)] += 1
    assert (used == 1).all()


def test_segments_begin_and_end_with_sentences_of_one_document(english_store, pairs):
    for begin, length in ((pairs.a_begin, pairs.a_length), (pairs.b_begin, pairs.b_length)):
        assert length.min() >= 1
        assert np.isin(begin, english_store.sentences).all()
        assert np.isin(begin + length, english_store.sentences).all()
        assert (document_of(english_store, begin) == document_of(english_store, begin + length - 1)).all()


def test_the_true_next_follows_and_the_random_one_is_from_elsewhere(english_store, pairs):
    following = pairs.b_begin == pairs.a_begin + pairs.a_length
    assert following[~pairs.is_random].all()
    same_document = document_of(english_store, pairs.a_begin) == document_of(english_store, pairs.b_begin)
    assert not same_document[pairs.is_random].any()


def test_full_chunks_reach_the_target_and_stop_there(english_store):
    pairs = walk_documents(english_store, seed=0, walk=0, max_tokens=MAX, short_share=0.0)
    true = pairs.take(np.flatnonzero(~pairs.is_random))
    length = true.a_length + true.b_length
    end = true.a_begin + length
    is_last = np.isin(end, english_store.sentences[english_store.documents])
    assert (length[~is_last] >= MAX).all()
    last_sentence = english_store.sentences[np.searchsorted(english_store.sentences, end) - 1]
    assert (last_sentence - true.a_begin < MAX).all()


def test_walks_differ_by_number_and_seed_and_repeat_themselves(english_store, pairs):
    def walk(seed, number):
        return walk_documents(english_store, seed=seed, walk=number, max_tokens=MAX, short_share=0.1)

    again = walk(0, 0)
    assert (again.b_begin == pairs.b_begin).all()
    for other in (walk(0, 1), walk(1, 0)):
        assert len(other) != len(pairs) or (other.b_begin != pairs.b_begin).any()


@pytest.mark.parametrize("store_name", ["english_store", "korean_store"])
def test_pairs_have_the_statistics_of_the_published_builder(request, store_name):
    # No short targets: one for a long document would make many short pairs, too few of them for a sharp comparison.
    store = request.getfixturevalue(store_name)
    options = ExampleOptions(seq_len=MAX + 3, short_share=0)
    walks = [walk_documents(store, 0, walk, max_tokens=MAX, short_share=0) for walk in range(8)]
    ours_a = np.concatenate([walk.a_length for walk in walks])
    ours_random = np.concatenate([walk.is_random for walk in walks])
    lengths = np.concatenate(
        [
            (cut := truncate_pairs(walk, MAX, 0, number, np.arange(len(walk)))).a_length + cut.b_length
            for number, walk in enumerate(walks)
        ]
    )
    instances = ReferenceBuilder(["a"], options, Random(0)).build(read_documents(store), 8)
    theirs_random = np.array([one.is_random_next for one in instances])
    theirs = np.array([len(one.tokens) - 3 for one in instances])
    error = 4 * (1 / len(instances)) ** 0.5
    assert abs(len(lengths) / len(instances) - 1) < 0.02
    assert abs(ours_random.mean() - theirs_random.mean()) < error
    assert abs(lengths.mean() - theirs.mean()) < error * theirs.std()
    assert abs((lengths == MAX).mean() - (theirs == MAX).mean()) < error
    assert ours_a.min() >= 1


def cumulate(lengths, most):
    """The share of segments that are no longer than 0, 1, 2 … tokens."""
    return np.bincount(lengths, minlength=most + 1).cumsum() / len(lengths)


@pytest.mark.parametrize("short_share", [0.0, 1.0])
def test_segments_are_as_long_as_the_published_builder_makes_them(korean_store, short_share):
    """A and B, each by itself, of true pairs and of random ones; the targets full, or all of them short."""
    options = ExampleOptions(seq_len=MAX + 3, short_share=short_share)
    walks = 30
    instances = ReferenceBuilder(["a"], options, Random(0)).build(read_documents(korean_store), walks)
    theirs_b = np.array([sum(one.segment_ids) - 1 for one in instances])
    theirs_a = np.array([len(one.tokens) - 3 for one in instances]) - theirs_b
    theirs_random = np.array([one.is_random_next for one in instances])
    made = [walk_documents(korean_store, 0, walk, max_tokens=MAX, short_share=short_share) for walk in range(walks)]
    ours = join_pairs([truncate_pairs(pairs, MAX, 0, walk, np.arange(len(pairs))) for walk, pairs in enumerate(made)])
    for is_random in (False, True):
        chosen, expected = ours.is_random == is_random, theirs_random == is_random
        assert min(chosen.sum(), expected.sum()) > 4000
        for found, published in ((ours.a_length, theirs_a), (ours.b_length, theirs_b)):
            difference = cumulate(found[chosen], MAX) - cumulate(published[expected], MAX)
            assert abs(difference).max() < 0.02


def test_a_document_walked_by_itself_has_the_pairs_it_has_among_others(english_store, monkeypatch):
    def walk(few, sentences):
        monkeypatch.setattr(pairs_module, "_FEW_DOCUMENTS", few)
        monkeypatch.setattr(pairs_module, "_SENTENCES_AT_ONCE", sentences)
        return walk_documents(english_store, seed=3, walk=1, max_tokens=20, short_share=0.3)

    in_step = walk(0, 1)
    for few, sentences in ((10**6, 7), (10**6, 10**6), (20, 7)):
        for found, expected in zip(*(vars(one).values() for one in (walk(few, sentences), in_step)), strict=True):
            assert found.dtype == expected.dtype and (found == expected).all()


def test_one_long_document_is_walked_in_a_few_array_operations(make_store, monkeypatch):
    store = make_store(["\n".join(["word"] * 20_000)], vocab_size=50, sentences="lines")
    calls = []
    fill = pairs_module._fill
    monkeypatch.setattr(pairs_module, "_fill", lambda *parts: calls.append(1) or fill(*parts))
    assert len(walk_documents(store, 0, 0, max_tokens=5, short_share=0.1)) > 3000
    assert len(calls) < 10


def test_about_a_tenth_of_the_documents_aim_short(make_store):
    # Documents of one length, sentences of one token: a document's first chunk is exactly its target.
    store = make_store(["\n".join(["word"] * 40)] * 3000, vocab_size=50, sentences="lines")
    pairs = walk_documents(store, 0, 0, max_tokens=30, short_share=0.1)
    chunk = np.where(pairs.is_random, 0, pairs.a_length + pairs.b_length)
    first = np.isin(pairs.a_begin, store.sentences[store.documents]) & ~pairs.is_random
    assert abs((chunk[first] < 30).mean() - 0.1 * 28 / 29) < 0.03
    assert chunk[first].min() >= 2


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(5, 200), st.integers(0, 2**31))
def test_truncation_cuts_the_longer_one_token_by_token(a, b, most, seed):
    pair = Pairs(np.array([1000]), np.array([a]), np.array([5000]), np.array([b]), np.array([False]))
    cut = truncate_pairs(pair, most, seed, 0, np.array([0]))
    expected_a, expected_b = a, b
    while expected_a + expected_b > most:
        if expected_a > expected_b:
            expected_a -= 1
        else:
            expected_b -= 1
    assert (cut.a_length[0], cut.b_length[0]) == (expected_a, expected_b)
    assert 1000 <= cut.a_begin[0] <= 1000 + a - expected_a
    assert 5000 <= cut.b_begin[0] <= 5000 + b - expected_b


def test_truncation_takes_from_front_and_back_alike():
    count = 20_000
    pairs = Pairs(
        np.zeros(count, dtype=np.int64), np.full(count, 50), np.zeros(count, dtype=np.int64), np.full(count, 30), None
    )
    cut = truncate_pairs(pairs, 60, 0, 0, np.arange(count))
    assert abs(cut.a_begin.mean() - 10) < 0.1 and abs(cut.a_begin.var() - 5) < 0.3
    assert (cut.b_begin == 0).all()


def test_a_store_with_one_document_still_has_pairs(make_store):
    store = make_store(["One sentence here. Another follows it. And a third one. The fourth closes."], vocab_size=80)
    pairs = walk_documents(store, 0, 0, max_tokens=10, short_share=0.1)
    assert len(pairs) and pairs.b_length.min() >= 1
