"""Heads against transformers: the folder of each goes both ways, with equal logits, losses and gradients."""

import json

import pytest
import torch
import transformers
from models import SENTENCES, make_model, padded_inputs

import malmoi
from malmoi.blocks.head import Head

CLASSES = {
    "sequence": transformers.AutoModelForSequenceClassification,
    "tokens": transformers.AutoModelForTokenClassification,
    "span": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
}
LABELS = ("긍정", "부정", "중립")
LABELLED = ("sequence", "tokens")
every_shape = pytest.mark.parametrize("shape", CLASSES)


def make_tasked(shape):
    pretrained = make_model()
    pretrained.change_head(
        Head(shape, LABELS if shape in LABELLED else (), "single_label_classification" if shape == "sequence" else None)
    )
    torch.nn.init.normal_(pretrained.model.task_head.output.bias)
    pretrained.absent = frozenset()
    return pretrained


def their_logits(model, inputs):
    if "MultipleChoice" in type(model).__name__:
        return model(**{name: tensor[None] for name, tensor in inputs.items()}).logits.reshape(-1, 1)
    output = model(**inputs)
    return torch.stack([output.start_logits, output.end_logits], -1) if "start_logits" in output else output.logits


@every_shape
def test_transformers_reads_our_folder(shape, tmp_path):
    ours = make_tasked(shape)
    ours.save(tmp_path / "model")
    theirs, report = CLASSES[shape].from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    inputs = padded_inputs(ours.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        found, expected = ours.model.task_head(ours.model(**inputs)), their_logits(theirs.eval(), inputs)
    if found.dim() == 3:
        found, expected = found[real], expected[real]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    if shape in LABELLED:
        assert tuple(theirs.config.id2label.values()) == LABELS and theirs.config.label2id["부정"] == 1


@every_shape
def test_their_folder_loads_here(shape, tmp_path):
    ours = make_tasked(shape)
    ours.save(tmp_path / "start")
    theirs = CLASSES[shape].from_pretrained(tmp_path / "start")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.mul_(1.1)
    theirs.save_pretrained(tmp_path / "model")
    ours.tokenizer.save(tmp_path / "model")
    loaded = malmoi.load(tmp_path / "model")
    assert loaded.head == ours.head and not loaded.notes and not loaded.absent
    inputs = padded_inputs(ours.tokenizer, SENTENCES[:1])
    with torch.no_grad():
        found, expected = loaded.model.task_head(loaded.model(**inputs)), their_logits(theirs.eval(), inputs)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    loaded.save(tmp_path / "again")
    assert malmoi.load(tmp_path / "again").head == loaded.head


def test_a_missing_head_is_told_and_half_a_model_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    make_tasked("sequence").save(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    save_file(
        {name: one for name, one in tensors.items() if "classifier" not in name},
        tmp_path / "model" / "model.safetensors",
    )
    loaded = malmoi.load(tmp_path / "model")
    assert loaded.absent == {"task_head"} and "the head for the task is not in the files" in loaded.notes[0]
    loaded.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_going_back_to_pre_training(tmp_path):
    tasked = make_tasked("tokens")
    with pytest.raises(malmoi.MalmoiError, match="no head for hidden words"):
        tasked.fill("나는 [MASK] 먹었다")
    words = tasked.model.embeddings.words.weight
    tasked.change_head(None)
    assert tasked.absent == {"pooler", "word_head", "next_sentence_head"} and tasked.head is None
    assert torch.equal(tasked.model.embeddings.words.weight, words)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"id2label": {"0": "a", "2": "b"}}, "id2label"),
        ({"id2label": ["a"]}, "id2label"),
        ({"problem_type": "poetry"}, "problem_type"),
        ({"classifier_dropout": "much"}, "classifier_dropout"),
        ({"id2label": None, "num_labels": 0}, "num_labels"),
    ],
)
def test_settings_of_a_head_that_make_no_sense(change, words, tmp_path):
    make_tasked("sequence").save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change))
    with pytest.raises(malmoi.MalmoiError, match=words):
        malmoi.load(tmp_path / "model")
