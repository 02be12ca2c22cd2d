"""Batches of like length: every example once an epoch, hardly any padding, the same whatever the division."""

import numpy as np
import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import prepare

from malmoi.tasks.batches import LikeLengthBatches
from malmoi.tasks.ragged import Items, cut_batch


def make_items(lengths):
    starts = np.concatenate(([0], np.cumsum(lengths)))
    count = len(lengths)
    return Items(
        ids=np.repeat(np.arange(count, dtype=np.int32), lengths) + 1,
        types=np.zeros(starts[-1], np.int8),
        starts=starts,
        rows=np.arange(count + 1),
        owners=np.arange(count),
        targets=np.arange(count),
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 17), st.integers(0, 5), st.integers(0, 3))
def test_every_item_counts_once_an_epoch(lengths, batch_size, seed, epoch):
    batches = LikeLengthBatches(make_items(np.array(lengths)), batch_size, 0, seed)
    seen = []
    for step in range(batches.steps_an_epoch * epoch, batches.steps_an_epoch * (epoch + 1)):
        batch = batches.batch(step, np.arange(batch_size))
        seen += batch.targets[batch.real].tolist()
        assert len(batch.real) == batch_size and batch.real.any()
    assert sorted(seen) == list(range(len(lengths)))


def test_hardly_anything_is_padded():
    lengths = np.random.default_rng(0).integers(5, 120, 4000)
    batches = LikeLengthBatches(make_items(lengths), 32, 0, seed=3)
    made = [batches.batch(step, np.arange(32)) for step in range(batches.steps_an_epoch)]
    padding = 1 - sum(one.count_tokens() for one in made) / sum(one.input_ids.size for one in made)
    assert padding < 0.03
    widths = [one.input_ids.shape[1] for one in made]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.2, "short and long batches come mixed"


def test_order_follows_from_seed_and_epoch():
    items = make_items(np.random.default_rng(0).integers(5, 60, 100))
    one, two, other = (LikeLengthBatches(items, 8, 0, seed) for seed in (1, 1, 2))
    one.batch(40, np.arange(8))  # looking elsewhere first changes nothing
    assert all((one.items_of(step) == two.items_of(step)).all() for step in range(30))
    assert any((one.items_of(step) != other.items_of(step)).any() for step in range(13))
    assert any((one.items_of(step) != one.items_of(step + 13)).any() for step in range(13))


def test_parts_of_a_batch_are_its_rows():
    items = make_items(np.random.default_rng(0).integers(5, 60, 30))
    batches = LikeLengthBatches(items, 8, 0, seed=1)
    whole = batches.batch(2, np.arange(8))
    for begin in (0, 4):
        part = batches.batch(2, np.arange(begin, begin + 4))
        assert (part.input_ids == whole.input_ids[begin : begin + 4]).all()


def test_no_mask_where_nothing_is_padded():
    items = make_items(np.array([5, 5, 7]))
    assert cut_batch(items, np.array([0, 1]), 0).attention_mask is None
    mixed = cut_batch(items, np.array([0, 2]), 0)
    assert mixed.attention_mask.sum() == mixed.count_tokens() == 12
    assert (mixed.input_ids[0] == [1, 1, 1, 1, 1, 0, 0]).all()


def test_choices_of_several_numbers_share_a_batch():
    prepared = prepare("choose", count=8)
    items = prepared.kind.encode(toys.choices(8))
    batch = cut_batch(items, np.arange(8), prepared.bundle.tokenizer.pad_id)
    assert batch.input_ids.shape[0] == batch.present.size and not batch.present.all()
    assert batch.present.sum(axis=1).tolist() == [len(one.choices) for one in toys.choices(8)]


@pytest.mark.parametrize("name", ["classify", "pair"])
def test_ids_are_those_of_the_tokenizer_and_no_longer_than_asked(name):
    prepared = prepare(name, count=8, seq_len=8)
    items = prepared.kind.encode(prepared.dev)
    assert items.lengths.max() == 8
    longer = prepare(name, count=8)
    ids = longer.kind.encode(prepared.dev)
    example = prepared.dev[0]
    expected = longer.bundle.tokenizer.encode(example.text, example.pair)
    assert (
        ids.ids[ids.tokens(0)].tolist() == expected.ids and ids.types[ids.tokens(0)].tolist() == expected.token_type_ids
    )
