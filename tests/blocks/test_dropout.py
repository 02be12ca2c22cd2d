import pytest
import torch

from malmoi.blocks.dropout import Dropout, drop, dropout_streams


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
    with dropout_streams(seeds):
        whole = [drop(x, 0.4), drop(x, 0.4)]
    parts = []
    for part, own in zip(x.chunk(groups), torch.tensor(seeds).chunk(groups), strict=True):
        with dropout_streams(own.tolist()):
            parts.append([drop(part, 0.4), drop(part, 0.4)])
    for call in range(2):
        assert torch.equal(torch.cat([part[call] for part in parts]), whole[call])
    assert not torch.equal(whole[0], whole[1])


def test_nothing_happens_in_evaluation_or_without_probability():
    x = torch.randn(4, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert (Dropout(1.0).train()(x) == 0).all()
