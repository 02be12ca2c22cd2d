"""The losses and gradients of each task against transformers' own, in train mode without dropout."""

import numpy as np
import pytest
import torch
import toys
import transformers
from toys import ALONE, prepare

from malmoi.catalog import SYSTEMS
from malmoi.tasks.ragged import cut_batch

CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CLASSES = {
    "classify": transformers.BertForSequenceClassification,
    "several labels": transformers.BertForSequenceClassification,
    "pair": transformers.BertForSequenceClassification,
    "regress": transformers.BertForSequenceClassification,
    "tag": transformers.BertForTokenClassification,
    "answer": transformers.BertForQuestionAnswering,
    "choose": transformers.BertForMultipleChoice,
}


def their_inputs(name, batch):
    inputs = {
        "input_ids": torch.from_numpy(batch.input_ids),
        "token_type_ids": torch.from_numpy(batch.token_type_ids),
    }
    if batch.attention_mask is not None:
        inputs["attention_mask"] = torch.from_numpy(batch.attention_mask).long()
    targets = torch.from_numpy(batch.targets)
    if name == "answer":
        return {**inputs, "start_positions": targets[:, 0], "end_positions": targets[:, 1]}
    if name == "choose":
        inputs = {key: tensor.view(*batch.present.shape, -1) for key, tensor in inputs.items()}
    return {**inputs, "labels": targets}


@pytest.mark.parametrize("name", CLASSES)
def test_losses_and_gradients_equal_transformers(name, tmp_path):
    prepared = prepare(name, count=24, model=CALM)
    model, kind, bundle = prepared.bundle.model.train(), prepared.kind, prepared.bundle
    bundle.absent = frozenset()
    bundle.save(tmp_path / "model")
    theirs = CLASSES[name].from_pretrained(tmp_path / "model").train()
    items = kind.encode(prepared.dev)
    chosen = np.arange(8)
    if name == "answer":  # theirs lets an answer begin at padding
        chosen = np.flatnonzero(items.lengths == items.lengths[0])
    if name == "choose":  # theirs knows only examples with as many choices
        chosen = np.flatnonzero(np.diff(items.rows) == 3)
    batch = cut_batch(items, chosen, bundle.tokenizer.pad_id)
    expected = theirs(**their_inputs(name, batch)).loss
    parts = kind.losses(model, batch, ALONE.device)
    counts = kind.count(batch)
    assert counts == {key: part.count for key, part in parts.items()}
    loss = parts["task"].total / counts["task"]
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=0)
    expected.backward()
    loss.backward()
    gradients = {key: one.grad for key, one in theirs.named_parameters()}
    table = SYSTEMS["bert"].table(bundle.config, bundle.head)
    wanted = table.read(gradients, dict(model.named_parameters())).tensors
    for key, parameter in model.named_parameters():
        assert (parameter.grad - wanted[key]).abs().max() <= 1e-4 * wanted[key].abs().max() + 1e-7, key


def test_contrast_is_the_cross_entropy_of_cosines():
    prepared = prepare("embed by contrast", count=24, model=CALM)
    items = prepared.kind.encode(toys.pairs(6))
    real = np.array([True] * 5 + [False])
    batch = cut_batch(items, np.arange(6), prepared.bundle.tokenizer.pad_id, real=real)
    model = prepared.bundle.model.eval()
    part = prepared.kind.losses(model, batch, ALONE.device)["task"]
    first, second = prepared.kind.outputs(model, batch, ALONE.device)[:5].unbind(1)
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=-1) * 20
    expected = torch.nn.functional.cross_entropy(cosines, torch.arange(5), reduction="sum")
    torch.testing.assert_close(part.total, expected, atol=1e-5, rtol=1e-5)
    assert part.count == 5


def test_class_weights_weigh_the_loss():
    prepared = prepare("classify", count=64, model=CALM, class_weights="balanced")
    items = prepared.kind.encode(prepared.dev)
    batch = cut_batch(items, np.arange(16), prepared.bundle.tokenizer.pad_id)
    model = prepared.bundle.model.eval()
    part = prepared.kind.losses(model, batch, ALONE.device)["task"]
    weights = torch.tensor(prepared.kind.head.settings["class_weights"])
    logits, targets = prepared.kind.outputs(model, batch, ALONE.device), torch.from_numpy(batch.targets)
    each = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    torch.testing.assert_close(part.total, (weights[targets] * each).sum())
    assert (weights[0] != weights[1]).item()
