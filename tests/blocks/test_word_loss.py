import pytest
import torch

from malmoi.blocks.word_loss import sum_word_loss


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 300])
@pytest.mark.parametrize("with_bias", [True, False])
def test_loss_and_gradients_equal_the_plain_way(rows, with_bias):
    torch.manual_seed(rows)
    hidden = torch.randn(rows, 16, requires_grad=True)
    weight = torch.randn(50, 16, requires_grad=True)
    bias = torch.randn(50, requires_grad=True) if with_bias else None
    labels = torch.randint(0, 50, (rows,))
    inputs = [tensor for tensor in (hidden, weight, bias) if tensor is not None]

    loss, right = sum_word_loss(hidden, weight, bias, labels)
    ours = torch.autograd.grad(loss / 7, inputs)
    logits = torch.nn.functional.linear(hidden, weight, bias)
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    theirs = torch.autograd.grad(expected / 7, inputs)
    torch.testing.assert_close(loss, expected, atol=1e-3, rtol=1e-5)
    assert int(right) == int((logits.argmax(1) == labels).sum())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, atol=1e-5, rtol=1e-4)


def test_no_gradient_is_made_where_none_is_wanted():
    with torch.no_grad():
        loss, _ = sum_word_loss(torch.randn(3, 4), torch.randn(9, 4), None, torch.tensor([1, 2, 3]))
    assert not loss.requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close_to_single(dtype):
    """Hidden states may come in half precision from autocast; weights stay single."""
    torch.manual_seed(0)
    hidden, weight, bias = torch.randn(300, 16), torch.randn(50, 16), torch.randn(50)
    labels = torch.randint(0, 50, (300,))
    gradients = []
    for rows in (hidden, hidden.to(dtype)):
        inputs = [tensor.clone().requires_grad_() for tensor in (rows, weight, bias)]
        with torch.autocast("cpu", dtype=dtype):
            loss, _ = sum_word_loss(*inputs, labels)
        gradients.append([loss.detach(), *torch.autograd.grad(loss, inputs)])
    assert [one.dtype for one in gradients[1]] == [torch.float32, dtype, torch.float32, torch.float32]
    for single, half in zip(*gradients, strict=True):
        assert (single - half).norm() < 0.02 * single.norm()
