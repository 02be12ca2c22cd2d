import numpy as np
import pytest

from malmoi.data.order import find_places, shuffle_epoch, shuffle_places
from malmoi.data.randomness import draw_key
from malmoi.errors import MalmoiError


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 65, 1000, 4097])
def test_a_shuffle_is_a_bijection(size):
    shuffled = shuffle_places(np.arange(size), size, draw_key(7, 1))
    assert sorted(shuffled.tolist()) == list(range(size))


def test_shuffles_differ_by_key_and_keep_no_order():
    first = shuffle_places(np.arange(10_000), 10_000, draw_key(0, 1))
    second = shuffle_places(np.arange(10_000), 10_000, draw_key(0, 2))
    assert (first == second).mean() < 0.01
    assert abs(np.corrcoef(first, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.05


def test_every_place_is_equally_likely_in_small_shuffles():
    shuffles = np.stack([shuffle_places(np.arange(6), 6, draw_key(seed, 1)) for seed in range(6000)])
    for column in shuffles.T:
        assert (abs(np.bincount(column, minlength=6) - 1000) < 150).all()


def test_an_epoch_shows_every_place_once_and_the_next_in_another_order():
    epochs, places = find_places(step=0, batch_size=100, epoch_size=50, positions=np.arange(100))
    assert epochs.tolist() == [0] * 50 + [1] * 50
    first, second = shuffle_epoch(3, 0, places[:50], 50), shuffle_epoch(3, 1, places[50:], 50)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != second.tolist()


def test_steps_beyond_the_numbers_are_refused():
    with pytest.raises(MalmoiError, match="--step 9223372036854775807, --batch-size 32: no run comes so far"):
        find_places(step=2**63 - 1, batch_size=32, epoch_size=50, positions=np.arange(32))


def test_any_step_is_found_directly_and_in_any_division_of_the_batch():
    epochs, places = find_places(step=10**9, batch_size=64, epoch_size=12_345, positions=np.arange(64))
    assert epochs[0] == 10**9 * 64 // 12_345
    for positions in (np.arange(32), np.arange(32, 64)):
        part = find_places(step=10**9, batch_size=64, epoch_size=12_345, positions=positions)
        assert part[0].tolist() == epochs[positions].tolist() and part[1].tolist() == places[positions].tolist()
