import numpy as np

from malmoi.data.randomness import draw_heads, draw_integers, draw_key, draw_uniform, draw_words


def test_numbers_are_fixed_forever():
    # Written down once: a change here would change what every seed means, and break resuming across versions.
    key = draw_key(12345, 2, np.array([0, 7]))
    assert draw_words(key, 3).tolist() == [9257741289384009747, 15870711688266467864]


def test_a_number_depends_on_nothing_but_its_name():
    together = draw_uniform(draw_key(1, 5, np.arange(1000)), 4)
    alone = draw_uniform(draw_key(1, 5, np.array([617])), 4)
    assert together[617] == alone[0]


def test_uniform_numbers_fill_the_interval_evenly():
    numbers = draw_uniform(draw_key(0, np.arange(1000))[:, None], np.arange(200)).ravel()
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = np.bincount((numbers * 50).astype(int), minlength=50)
    expected = len(numbers) / 50
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 100  # 49 degrees of freedom: mean 49, this is five standard deviations away


def test_neighbouring_names_are_unrelated():
    for first, second in [
        (draw_uniform(draw_key(0, np.arange(20_000)), 0), draw_uniform(draw_key(0, np.arange(20_000)), 1)),
        (draw_uniform(draw_key(0, np.arange(20_000)), 0), draw_uniform(draw_key(1, np.arange(20_000)), 0)),
        (draw_uniform(draw_key(0, 1, np.arange(20_000)), 0), draw_uniform(draw_key(0, np.arange(20_000), 1), 0)),
    ]:
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_integers_reach_both_ends_and_no_further():
    numbers = draw_integers(draw_key(3, np.arange(5000)), 0, 7)
    assert sorted(set(numbers.tolist())) == list(range(7))


def test_heads_are_binomial():
    for flips in (1, 63, 64, 65, 200):
        heads = draw_heads(draw_key(1, np.arange(20_000)), np.full(20_000, flips))
        assert heads.min() >= 0 and heads.max() <= flips
        assert abs(heads.mean() - flips / 2) < 4 * (flips / 4 / 20_000) ** 0.5
        assert abs(heads.var() / (flips / 4) - 1) < 0.06


def test_heads_of_no_flips_is_none_and_rows_do_not_touch_each_other():
    keys = draw_key(1, np.arange(3))
    assert draw_heads(keys, np.array([0, 0, 0])).tolist() == [0, 0, 0]
    mixed = draw_heads(keys, np.array([0, 500, 3]))
    assert mixed[0] == 0
    assert mixed[2] == draw_heads(keys[2:], np.array([3]))[0]
