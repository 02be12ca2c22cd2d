"""Batches drawn at random and computed in groups of like length: every example once an epoch, hardly any padding, the
same whatever the division."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import prepare

from malmoi.tasks.batches import TaskBatches
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
    batches = TaskBatches(make_items(np.array(lengths)), batch_size, 0, seed)
    seen = []
    for step in range(batches.steps_an_epoch * epoch, batches.steps_an_epoch * (epoch + 1)):
        groups = compute(batches, step, np.arange(batch_size))
        for group in groups:
            seen += group.targets[group.real].tolist()
        assert sum(len(group.real) for group in groups) == batch_size and any(group.real.any() for group in groups)
    assert sorted(seen) == list(range(len(lengths)))


def compute(batches, step, positions):
    """What the training loop computes of a step."""
    return [batches.batch(step, some) for some in batches.divide(step, positions)]


LENGTHS = np.random.default_rng(0).integers(5, 120, 4000)


def test_hardly_anything_is_padded():
    batches = TaskBatches(make_items(LENGTHS), 32, 0, seed=3)
    made = [one for step in range(batches.steps_an_epoch) for one in compute(batches, step, np.arange(32))]
    positions = sum(one.input_ids.size for one in made)
    assert 1 - sum(one.count_tokens() for one in made) / positions < 0.1
    assert len(made) < 6 * batches.steps_an_epoch


def test_a_batch_holds_short_and_long_examples_as_the_epoch_does():
    """Batches of like lengths cost two points of F1: their means weighed the tokens of short sentences more."""
    batches = TaskBatches(make_items(LENGTHS), 32, 0, seed=3)
    means = [LENGTHS[batches.items_of(step)].mean() for step in range(batches.steps_an_epoch)]
    drawn_at_random = LENGTHS.std() / np.sqrt(32)
    assert np.std(means) == pytest.approx(drawn_at_random, rel=0.2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=9))
def test_no_other_division_into_groups_costs_less(lengths):
    size = len(lengths)
    batches = TaskBatches(make_items(np.array(lengths)), size, 0, seed=0)
    ordered = sorted(lengths, reverse=True)

    def cost(bounds):
        return sum((end - begin) * ordered[begin] + 48 for begin, end in pairwise(bounds))

    every = [(0, *cuts, size) for count in range(size) for cuts in combinations(range(1, size), count)]
    made = compute(batches, 0, np.arange(size))
    assert sum(one.input_ids.size + 48 for one in made) == min(map(cost, every))


def test_order_follows_from_seed_and_epoch():
    items = make_items(np.random.default_rng(0).integers(5, 60, 100))
    one, two, other = (TaskBatches(items, 8, 0, seed) for seed in (1, 1, 2))
    one.batch(40, np.arange(8))  # looking elsewhere first changes nothing
    assert all((one.items_of(step) == two.items_of(step)).all() for step in range(30))
    assert any((one.items_of(step) != other.items_of(step)).any() for step in range(13))
    assert any((one.items_of(step) != one.items_of(step + 13)).any() for step in range(13))


@pytest.mark.parametrize("parts", [[range(16), range(16, 32)], [range(0, 32, 3), range(1, 32, 3), range(2, 32, 3)]])
def test_rows_are_as_wide_in_any_micro_batch_and_on_any_rank(parts):
    """A row drops the same elements only where it is as wide."""
    batches = TaskBatches(make_items(LENGTHS), 32, 0, seed=1)
    for step in (0, 2, batches.steps_an_epoch - 1):
        whole = rows_of(batches, step, np.arange(32))
        assert len({len(row) for row in whole.values()}) > 1
        divided = {}
        for part in parts:
            divided |= rows_of(batches, step, np.array(part))
        assert divided == whole


def rows_of(batches, step, positions):
    rows = {}
    for some in batches.divide(step, positions):
        rows |= zip(some.tolist(), batches.batch(step, some).input_ids.tolist(), strict=True)
    return rows


def test_examples_that_are_compared_stay_together():
    batches = TaskBatches(make_items(LENGTHS), 32, 0, seed=1, together=True)
    [only] = compute(batches, 0, np.arange(32))
    assert len(only.real) == 32


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
