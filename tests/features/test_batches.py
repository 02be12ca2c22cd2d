"""Batches hold every sequence once, keep to their budget, and are next to no padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi.features.batches import fill_batch, plan_batches


@given(st.lists(st.integers(1, 512), max_size=200), st.integers(1, 4096))
def test_every_sequence_is_in_one_batch(lengths, budget):
    lengths = np.array(lengths, dtype=np.int64)
    batches = list(plan_batches(lengths, budget))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = lengths[batch].max()
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert lengths[batch].min() >= longest - max(1, longest // 16)
        assert lengths[batch[0]] == longest


def test_real_lengths_make_little_padding():
    lengths = np.random.default_rng(0).gamma(4, 6, size=2000).astype(np.int64) + 2
    batches = list(plan_batches(lengths, 2048))
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded / lengths.sum() < 1.03 and len(batches) < 80


@pytest.mark.parametrize("lengths", [[3, 3], [3, 2]])
def test_no_mask_where_nothing_is_padded(lengths):
    sequences = [[7] * length for length in lengths]
    ids, counts, mask = fill_batch(sequences, np.array([0, 1]), pad_id=9)
    assert counts.tolist() == lengths and ids.shape == (2, 3)
    if lengths[0] == lengths[1]:
        assert mask is None
    else:
        assert ids[1].tolist() == [7, 7, 9] and mask[1].tolist() == [True, True, False]
