import pytest
import torch

from malmoi.blocks.dropout import Dropout, SharedDropout, drop, drop_shared, dropout_streams


def test_the_share_and_the_expectation_are_right():
    torch.manual_seed(0)
    x = torch.ones(1000, 1001)
    for probability in (0.1, 0.5):
        dropped = drop(x, probability)
        assert abs((dropped == 0).float().mean() - probability) < 0.002
        assert abs(dropped.mean() - 1) < 0.003
        assert dropped.unique().numel() == 2


def test_the_gradient_takes_the_same_way():
    torch.manual_seed(0)
    x = torch.randn(64, 65, requires_grad=True)
    dropped = drop(x, 0.3)
    dropped.backward(torch.ones_like(dropped))
    torch.testing.assert_close(x.grad, torch.where(dropped == 0, 0.0, dropped.detach() / x.detach()))


def test_neighbours_are_independent():
    torch.manual_seed(0)
    kept = (drop(torch.ones(4000, 256), 0.5) != 0).float()
    for shift in (1, 2, 3, 4, 8):
        correlation = torch.corrcoef(torch.stack([kept[:, shift:].flatten(), kept[:, :-shift].flatten()]))[0, 1]
        assert abs(correlation) < 0.01


@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_rows_drop_the_same_in_any_division(groups):
    seeds = list(range(8))
    x = torch.randn(8, 7, 5)
    with dropout_streams(seeds, shared=0):
        whole = [drop(x, 0.4), drop(x, 0.4)]
    parts = []
    for part, own in zip(x.chunk(groups), torch.tensor(seeds).chunk(groups), strict=True):
        with dropout_streams(own.tolist(), shared=0):
            parts.append([drop(part, 0.4), drop(part, 0.4)])
    for call in range(2):
        assert torch.equal(torch.cat([part[call] for part in parts]), whole[call])
    assert not torch.equal(whole[0], whole[1])


@pytest.mark.parametrize("rows", [7, 8, 16])
def test_what_has_no_rows_drops_the_same_in_any_division(rows):
    """Such as a table of positions, also where it has as many rows as the batch."""
    table = torch.ones(rows, 6)
    dropped = []
    for count in (1, 4, 8):
        for first in range(0, 8, count):
            with dropout_streams(range(first, first + count), shared=5):
                drop(torch.ones(count, 3), 0.4)  # rows draw from streams of their own
                dropped.append(torch.cat([drop_shared(table, 0.4), SharedDropout(0.4).train()(table)]))
    assert all(torch.equal(one, dropped[0]) for one in dropped)
    assert not torch.equal(dropped[0][:rows], dropped[0][rows:])
    with dropout_streams([0], shared=6):
        assert not torch.equal(drop_shared(table, 0.4), dropped[0][:rows])


@pytest.mark.parametrize("rows", [1, 4, 7, 16])
def test_a_wrong_number_of_rows_is_an_error(rows):
    with dropout_streams(range(8), shared=0), pytest.raises(ValueError, match=f"{rows} rows in a batch of 8.*Shared"):
        Dropout(0.4).train()(torch.ones(rows, 6))


def test_examples_of_several_rows_say_so():
    """A prompt with three choices is one example and three rows."""
    whole, parts = torch.ones(6, 50), []
    with dropout_streams([3, 4], shared=0, rows=6):
        together = drop(whole, 0.4)
    for seed in (3, 4):
        with dropout_streams([seed], shared=0, rows=3):
            parts.append(drop(whole[:3], 0.4))
    assert torch.equal(together, torch.cat(parts))
    with pytest.raises(ValueError, match="7 rows cannot be divided among 2"), dropout_streams([3, 4], shared=0, rows=7):
        pass


def test_other_devices_are_seeded_by_the_rows_of_the_micro_batch(monkeypatch):
    """There is none here: that they draw from this generator is torch's promise."""
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed", seeded.append)
    for seeds in ([11, 12], [13, 14], [11, 12]):
        with dropout_streams(seeds, shared=0, device=torch.device("cuda", 1)):
            pass
    assert seeded == [11, 13, 11]


def test_nothing_happens_in_evaluation_or_without_probability():
    x = torch.randn(4, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert (Dropout(1.0).train()(x) == 0).all() and (SharedDropout(1.0).train()(x) == 0).all()
    assert SharedDropout(0.5).eval()(x) is x
