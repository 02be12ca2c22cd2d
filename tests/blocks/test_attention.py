import pytest
import torch

from malmoi.blocks.attention import SelfAttention, attend, weigh


@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_a_loop_over_queries(masked):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, 8) for _ in range(3))
    mask = torch.rand(2, 1, 5, 5) > 0.3 if masked else None
    if masked:
        mask[..., 0] = True
    expected = torch.empty_like(query)
    for b in range(2):
        for h in range(3):
            for t in range(5):
                scores = torch.stack([query[b, h, t] @ key[b, h, s] / 8**0.5 for s in range(5)])
                if masked:
                    scores[~mask[b, 0, t]] = -torch.inf
                expected[b, h, t] = scores.softmax(0) @ value[b, h]
    torch.testing.assert_close(attend(query, key, value, mask=mask), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weigh(query, key, mask=mask) @ value, expected, atol=1e-5, rtol=1e-5)


def test_the_way_with_dropout_is_the_same_on_average():
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, 6, 8) for _ in range(3))
    plain = attend(query, key, value)
    mean = torch.stack([attend(query, key, value, dropout=0.1) for _ in range(4000)]).mean(0)
    torch.testing.assert_close(mean, plain, atol=0.03, rtol=0)


def test_scaling_keeps_the_variance_of_scores():
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 500, 64), torch.randn(1, 1, 500, 64)
    assert abs((query @ key.transpose(-1, -2) / 8).var() - 1) < 0.05
    assert (query @ key.transpose(-1, -2)).var() > 50


def test_a_row_without_keys_is_no_nan():
    query, key = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)
    weights = weigh(query, key, mask=torch.zeros(1, 1, 2, 3, dtype=torch.bool))
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 3))


def test_heads_are_slices_of_one_matrix():
    torch.manual_seed(0)
    attention = SelfAttention(12, 3, 0.0).eval()
    x = torch.randn(2, 5, 12)
    gathered = []
    weight, bias = attention.qkv.weight, attention.qkv.bias
    for head in range(3):
        rows = [slice(part * 12 + head * 4, part * 12 + head * 4 + 4) for part in range(3)]
        query, key, value = (x @ weight[r].T + bias[r] for r in rows)
        gathered.append((query @ key.transpose(1, 2) / 2).softmax(-1) @ value)
    expected = attention.output(torch.cat(gathered, -1))
    torch.testing.assert_close(attention(x)[0], expected, atol=1e-5, rtol=1e-5)
