"""The forms in which folders of others come: names, shards, precisions, heads that are there or not."""

import json
import shutil

import pytest
import torch
import transformers
from models import SENTENCES, padded_inputs
from safetensors.torch import load_file, save_file

import malmoi
from malmoi.errors import MalmoiError


@pytest.fixture
def rewrite(saved, tmp_path):
    """A copy of the folder whose tensors went through a function."""

    def make(change):
        folder = shutil.copytree(saved, tmp_path / "changed")
        tensors = change(load_file(saved / "model.safetensors"))
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
        return folder

    return make


def assert_same_weights(model, saved):
    expected = malmoi.load(saved).model.state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(value, expected[name]), name


HEADS = {
    "pooler": ("bert.pooler.", "pooler"),
    "word_head": ("cls.predictions.", "hidden words"),
    "next_sentence_head": ("cls.seq_relationship.", "next sentence"),
}


def without(tensors, *prefixes):
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(prefixes)}


def test_folders_that_transformers_wrote(saved, tmp_path):
    theirs = transformers.BertForPreTraining.from_pretrained(saved)
    theirs.save_pretrained(tmp_path / "theirs")
    transformers.AutoTokenizer.from_pretrained(saved).save_pretrained(tmp_path / "theirs")
    ours = malmoi.load(tmp_path / "theirs")
    assert ours.notes == []
    assert_same_weights(ours.model, saved)


def test_an_encoder_without_prefix(rewrite, saved):
    folder = rewrite(lambda tensors: {name.removeprefix("bert."): t for name, t in without(tensors, "cls.").items()})
    ours = malmoi.load(folder)
    assert ours.absent == {"word_head", "next_sentence_head"} and len(ours.notes) == 2
    inputs = padded_inputs(ours.tokenizer, SENTENCES)
    with torch.no_grad():
        reference = transformers.AutoModel.from_pretrained(folder)(**inputs)
        assert torch.allclose(ours.model(**inputs).pooler_output, reference.pooler_output, atol=1e-5)


def test_names_of_tensorflow(rewrite, saved):
    def rename(name):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    ours = malmoi.load(rewrite(lambda tensors: {rename(name): tensor for name, tensor in tensors.items()}))
    assert ours.notes == []
    assert_same_weights(ours.model, saved)


def test_weights_in_several_files(saved, tmp_path):
    folder = tmp_path / "shards"
    theirs = transformers.BertForPreTraining.from_pretrained(saved)
    theirs.save_pretrained(folder, max_shard_size="40KB")
    shutil.copy(saved / "tokenizer.json", folder)
    assert (folder / "model.safetensors.index.json").is_file() and not (folder / "model.safetensors").exists()
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert_same_weights(malmoi.load(folder).model, saved)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_single(rewrite, dtype):
    narrowed = {}

    def narrow(tensors):
        narrowed.update({name: tensor.to(dtype) for name, tensor in tensors.items()})
        return narrowed

    model = malmoi.load(rewrite(narrow)).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(model.pooler.weight, narrowed["bert.pooler.dense.weight"].float())


@pytest.mark.parametrize("part", HEADS)
def test_a_head_that_is_missing_is_fresh_and_told(rewrite, saved, part):
    prefix, words = HEADS[part]
    folder = rewrite(lambda tensors: without(tensors, prefix))
    ours, again = malmoi.load(folder), malmoi.load(folder)
    assert ours.absent == {part} and len(ours.notes) == 1 and words in ours.notes[0]
    expected = malmoi.load(saved).model.state_dict()
    for name, value in ours.model.state_dict().items():
        assert torch.equal(value, expected[name]) != name.startswith(f"{part}."), name
        assert torch.equal(value, again.model.state_dict()[name]) and value.isfinite().all()


@pytest.mark.parametrize(
    ("prefixes", "architecture"),
    [
        (["cls."], "BertModel"),
        (["cls.seq_relationship."], "BertForMaskedLM"),
        (["cls.predictions."], "BertForNextSentencePrediction"),
        (["cls.", "bert.pooler."], "BertModel"),
    ],
)
def test_fresh_heads_are_not_saved(rewrite, tmp_path, prefixes, architecture):
    folder = rewrite(lambda tensors: without(tensors, *prefixes))
    malmoi.load(folder).save(tmp_path / "again")
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    assert json.loads((tmp_path / "again" / "config.json").read_text())["architectures"] == [architecture]
    assert malmoi.load(tmp_path / "again").absent == malmoi.load(folder).absent


def test_half_a_head_is_an_error(rewrite):
    folder = rewrite(lambda tensors: without(tensors, "cls.predictions.transform.dense.weight"))
    with pytest.raises(MalmoiError, match=r"cls\.predictions\.transform\.dense\.weight is missing"):
        malmoi.load(folder)


def test_a_missing_tensor_of_the_encoder_is_named(rewrite):
    folder = rewrite(lambda tensors: without(tensors, "bert.encoder.layer.1.attention.self.key.bias"))
    with pytest.raises(MalmoiError, match=r"bert\.encoder\.layer\.1\.attention\.self\.key\.bias is missing"):
        malmoi.load(folder)


def test_tensors_left_over_are_named(rewrite, saved):
    extra = {"classifier.weight": torch.zeros(2, 32), "bert.embeddings.position_ids": torch.arange(48)[None]}
    ours = malmoi.load(rewrite(lambda tensors: tensors | extra))
    assert ours.notes == ["tensors that are not used: classifier.weight"]
    assert_same_weights(ours.model, saved)


def test_copies_of_tied_tensors_are_accepted(rewrite, saved):
    def copy(tensors):
        words, bias = tensors["bert.embeddings.word_embeddings.weight"], tensors["cls.predictions.bias"]
        return tensors | {
            "cls.predictions.decoder.weight": words.clone(),
            "cls.predictions.decoder.bias": bias.clone(),
        }

    ours = malmoi.load(rewrite(copy))
    assert ours.notes == []
    assert_same_weights(ours.model, saved)


def test_a_tied_tensor_under_its_other_name_only(rewrite, saved):
    def move(tensors):
        tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
        return tensors

    assert_same_weights(malmoi.load(rewrite(move)).model, saved)


def test_an_output_matrix_of_its_own_is_refused(rewrite):
    def untie(tensors):
        words = tensors["bert.embeddings.word_embeddings.weight"]
        return tensors | {"cls.predictions.decoder.weight": words + 1}

    with pytest.raises(MalmoiError, match=r"cls\.predictions\.decoder\.weight differs"):
        malmoi.load(rewrite(untie))


def test_settings_that_do_not_matter_are_passed_over(saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "model")
    content = json.loads((folder / "config.json").read_text())
    content |= {"use_cache": True, "position_embedding_type": "absolute", "is_decoder": False, "pad_token_id": None}
    content |= {"gradient_checkpointing": False, "id2label": {"0": "x"}, "directionality": "bidi"}
    (folder / "config.json").write_text(json.dumps(content))
    assert malmoi.load(folder).notes == []
    (folder / "config.json").write_text(json.dumps(content | {"number_of_moons": 2}))
    assert malmoi.load(folder).notes == ["settings of config.json that are not used: number_of_moons"]


def test_code_in_a_folder_is_never_executed(saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "model")
    content = json.loads((folder / "config.json").read_text())
    content["auto_map"] = {"AutoConfig": "trap.Config", "AutoModel": "trap.Model"}
    (folder / "config.json").write_text(json.dumps(content))
    (folder / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    assert any("auto_map" in note and "never executed" in note for note in malmoi.load(folder).notes)
    assert not (tmp_path / "sprung").exists()
