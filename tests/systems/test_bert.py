"""BERT against transformers: outputs, losses, gradients, in eval and in train, with and without padding."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from malmoi.errors import MalmoiError
from malmoi.objectives.masked import count_predictions, sum_losses
from malmoi.systems.bert import PRESETS, Bert, BertConfig, weight_map
from malmoi.values import IGNORED, Batch

CPU = torch.device("cpu")
SMALL = BertConfig(
    vocab_size=120,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=40,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def reference_of(config):
    fields = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return transformers.BertConfig(**fields)


def scatter(module, seed=0):
    """Weights that are nowhere zero or one, so that a forgotten bias or norm shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)


def copy_weights(reference, model):
    theirs = {name: value for name, value in reference.state_dict().items() if "decoder" not in name}
    matched = weight_map(model.config).read(theirs, model.state_dict())
    assert matched.missing == [] and [name for name in matched.unexpected if "position_ids" not in name] == []
    model.load_state_dict(matched.tensors)


@pytest.fixture
def pair():
    torch.manual_seed(0)
    reference = transformers.BertForPreTraining(reference_of(SMALL))
    scatter(reference)
    model = Bert(SMALL)
    copy_weights(reference, model)
    return reference, model


def make_batch(padded, rows=6, width=20, seed=0):
    random = np.random.default_rng(seed)
    ids = random.integers(5, SMALL.vocab_size, (rows, width))
    types = np.zeros_like(ids)
    types[:, width // 2 :] = 1
    labels = np.where(random.random(ids.shape) < 0.2, ids, IGNORED)
    mask = None
    if padded:
        lengths = random.integers(5, width + 1, rows)
        mask = np.arange(width) < lengths[:, None]
        ids, types, labels = np.where(mask, ids, 0), np.where(mask, types, 0), np.where(mask, labels, IGNORED)
    return Batch(ids, types, mask, labels, random.integers(0, 2, rows))


def tensors_of(batch):
    mask = None if batch.attention_mask is None else torch.from_numpy(batch.attention_mask).long()
    return {
        "input_ids": torch.from_numpy(batch.input_ids),
        "token_type_ids": torch.from_numpy(batch.token_type_ids),
        "attention_mask": mask,
    }


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_outputs_losses_and_gradients_equal_transformers(pair, padded, training):
    reference, model = pair
    reference.train(training), model.train(training)
    batch = make_batch(padded)
    inputs = tensors_of(batch)
    theirs = reference(
        **inputs,
        labels=torch.from_numpy(batch.labels),
        next_sentence_label=torch.from_numpy(batch.next_sentence_label),
        output_hidden_states=True,
    )
    ours = model(**inputs, output_hidden_states=True)
    real = slice(None) if batch.attention_mask is None else torch.from_numpy(batch.attention_mask)
    for their_layer, our_layer in zip(theirs.hidden_states, ours.hidden_states, strict=True):
        torch.testing.assert_close(our_layer[real], their_layer[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(
        model.word_logits(ours.last_hidden_state)[real], theirs.prediction_logits[real], atol=1e-5, rtol=1e-5
    )
    parts = sum_losses(model, batch, CPU)
    counts = count_predictions(batch)
    assert counts == {name: part.count for name, part in parts.items()}
    loss = sum(part.total / counts[name] for name, part in parts.items())
    torch.testing.assert_close(loss, theirs.loss, atol=1e-5, rtol=0)

    theirs.loss.backward()
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in reference.named_parameters() if "decoder" not in name}
    expected = weight_map(SMALL).read(gradients, dict(model.named_parameters())).tensors
    for name, parameter in model.named_parameters():
        scale = expected[name].abs().max()
        assert (parameter.grad - expected[name]).abs().max() <= 1e-4 * scale + 1e-8, name


@pytest.mark.parametrize("name", ["tiny", "mini", "small", "medium", "base", "large"])
def test_presets_have_the_published_numbers_of_parameters(name):
    published = {
        "tiny": (4_385_920, 4_433_468),
        "mini": (11_170_560, 11_267_900),
        "small": (28_763_648, 29_058_876),
        "medium": (41_373_184, 41_668_412),
        "base": (109_482_240, 110_106_428),
        "large": (335_141_888, 336_226_108),
    }
    with torch.device("meta"):
        model = Bert(PRESETS[f"bert-{name}"])
    encoder = [model.embeddings, *model.layers, model.pooler]
    counts = (
        sum(parameter.numel() for module in encoder for parameter in module.parameters()),
        sum(parameter.numel() for parameter in model.parameters()),
    )
    assert counts == published[name]


def test_presets_with_the_cased_vocabulary_have_the_published_numbers_of_parameters():
    for name, total in (("base", 108_932_934), ("large", 334_661_958)):
        with torch.device("meta"):
            model = Bert(replace(PRESETS[f"bert-{name}"], vocab_size=28996))
        assert sum(parameter.numel() for parameter in model.parameters()) == total


def test_the_output_unpacks_to_what_was_asked_for(pair):
    _, model = pair
    inputs = tensors_of(make_batch(False))
    last, pooled = model(**inputs)
    assert last.shape == (6, 20, 48) and pooled.shape == (6, 48)
    last, pooled, hidden = model(**inputs, output_hidden_states=True)
    assert len(hidden) == 4 and hidden[3] is last
    *_, attentions = model(**inputs, output_attentions=True)
    assert len(attentions) == 3 and attentions[0].shape == (6, 4, 20, 20)
    torch.testing.assert_close(attentions[0].sum(-1), torch.ones(6, 4, 20))


def test_attentions_equal_transformers_and_do_not_change_the_result(pair):
    reference, model = pair
    reference.eval(), model.eval()
    reference.set_attn_implementation("eager")
    inputs = tensors_of(make_batch(True))
    theirs = reference.bert(**inputs, output_attentions=True)
    ours = model(**inputs, output_attentions=True)
    mask = inputs["attention_mask"].bool()
    for expected, weights in zip(theirs.attentions, ours.attentions, strict=True):
        torch.testing.assert_close(weights.transpose(1, 2)[mask], expected.transpose(1, 2)[mask], atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.last_hidden_state[mask], model(**inputs).last_hidden_state[mask], atol=1e-5, rtol=0)


def test_a_head_mask_takes_a_head_out(pair):
    _, model = pair
    model.eval()
    inputs = tensors_of(make_batch(False))
    plain = model(**inputs).last_hidden_state
    torch.testing.assert_close(model(**inputs, head_mask=torch.ones(4)).last_hidden_state, plain, atol=1e-5, rtol=0)
    heads = torch.ones(3, 4)
    heads[1, 2] = 0
    masked = model(**inputs, head_mask=heads).last_hidden_state
    size = 48 // 4
    with torch.no_grad():
        model.layers[1].attention.output.weight[:, 2 * size : 3 * size] = 0
    torch.testing.assert_close(model(**inputs).last_hidden_state, masked, atol=1e-5, rtol=0)
    assert (masked - plain).abs().max() > 1e-3


def test_embeddings_and_positions_can_be_given(pair):
    _, model = pair
    model.eval()
    inputs = tensors_of(make_batch(False))
    ids = inputs.pop("input_ids")
    plain = model(ids, **inputs).last_hidden_state
    embeds = model.embeddings.words(ids)
    assert torch.equal(model(inputs_embeds=embeds, **inputs).last_hidden_state, plain)
    positions = torch.arange(20)[None]
    assert torch.equal(model(ids, position_ids=positions, **inputs).last_hidden_state, plain)
    moved = model(ids, position_ids=positions + 1, **inputs).last_hidden_state
    assert (moved - plain).abs().max() > 1e-3
    with pytest.raises(MalmoiError, match="either input_ids or inputs_embeds"):
        model()


def test_padding_changes_nothing(pair):
    _, model = pair
    model.eval()
    ids = torch.from_numpy(make_batch(False, rows=1, width=9).input_ids)
    alone = model(ids).last_hidden_state
    padded = torch.cat([ids, torch.zeros(1, 7, dtype=torch.long)], dim=1)
    mask = torch.arange(16)[None] < 9
    together = model(padded, attention_mask=mask)
    torch.testing.assert_close(together.last_hidden_state[:, :9], alone, atol=1e-6, rtol=0)


def test_without_positions_the_encoder_does_not_know_the_order(pair):
    _, model = pair
    model.eval()
    with torch.no_grad():
        model.embeddings.positions.weight.zero_()
    ids = torch.from_numpy(make_batch(False, rows=1, width=9).input_ids)
    order = torch.randperm(9)
    torch.testing.assert_close(
        model(ids[:, order]).last_hidden_state, model(ids).last_hidden_state[:, order], atol=1e-5, rtol=0
    )


def test_dropout_acts_in_training_only():
    model = Bert(BertConfig(**{**SMALL.__dict__, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}))
    inputs = tensors_of(make_batch(True))
    model.train()
    assert not torch.equal(model(**inputs).last_hidden_state, model(**inputs).last_hidden_state)
    model.eval()
    assert torch.equal(model(**inputs).last_hidden_state, model(**inputs).last_hidden_state)


def test_a_fresh_model_knows_nothing():
    torch.manual_seed(0)
    config = BertConfig(**{**SMALL.__dict__, "vocab_size": 5000, "hidden_size": 64})
    batch = make_batch(False, rows=32)
    parts = sum_losses(Bert(config), batch, CPU)
    assert abs(float(parts["mlm"].total.detach()) / parts["mlm"].count - np.log(5000)) < 0.1
    assert abs(float(parts["nsp"].total.detach()) / parts["nsp"].count - np.log(2)) < 0.05


def test_weights_start_within_two_deviations():
    model = Bert(SMALL)
    weight = model.layers[0].attention.qkv.weight
    assert weight.abs().max() <= 0.04 and abs(weight.std() - 0.0176) < 0.001
    assert (model.layers[0].attention.qkv.bias == 0).all() and (model.embeddings.norm.weight == 1).all()


def test_impossible_sizes_are_refused():
    with pytest.raises(MalmoiError, match="hidden_size 770 cannot be divided"):
        BertConfig(hidden_size=770)
    with pytest.raises(MalmoiError, match="num_hidden_layers 0"):
        BertConfig(num_hidden_layers=0)
    with pytest.raises(MalmoiError, match="hidden_act 'swish2'"):
        Bert(BertConfig(**{**SMALL.__dict__, "hidden_act": "swish2"}))
    with pytest.raises(MalmoiError, match="41 tokens is longer than the model's 40 positions"):
        Bert(SMALL)(torch.zeros(1, 41, dtype=torch.long))


@pytest.mark.parametrize("value", [-1.0, 1.0, float("nan"), float("inf")])
def test_a_dropout_that_is_no_share_is_refused_wherever_it_comes_from(value):
    with pytest.raises(MalmoiError, match=r"^hidden_dropout_prob .* from 0 to below 1 is needed"):
        BertConfig(hidden_dropout_prob=value)
