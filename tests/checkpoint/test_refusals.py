"""Folders that are wrong, damaged or hostile: one sentence that names the place, before anything is allocated."""

import json
import resource
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import malmoi
from malmoi.checkpoint import tensors
from malmoi.checkpoint.summary import summarise
from malmoi.errors import MalmoiError


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def configure(folder, **changes):
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": 10**9}, "hidden_size is 1,000,000,000"),
        ({"hidden_size": 10**30, "num_attention_heads": 10}, "hidden_size is 1,000,000"),
        ({"hidden_size": 64}, "shape"),
        ({"vocab_size": 10**11}, "vocab_size is 100,000,000,000"),
        ({"max_position_embeddings": 10**11}, "max_position_embeddings is 100,000,000,000"),
        ({"intermediate_size": 10**11}, "intermediate_size is 100,000,000,000"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
        ({"num_hidden_layers": 300}, "num_hidden_layers is 300"),
        ({"num_hidden_layers": 3}, r"bert\.encoder\.layer\.2\.\S+ is missing"),
        ({"hidden_size": -32}, "hidden_size"),
        ({"max_position_embeddings": -1}, "max_position_embeddings -1"),
        ({"hidden_size": "32"}, "hidden_size .* a whole number"),
        ({"hidden_size": 32.0}, "hidden_size .* a whole number"),
        ({"hidden_size": None}, "hidden_size .* a whole number"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps is NaN"),
        ({"layer_norm_eps": -1e-12}, "layer_norm_eps -1e-12: at least 0"),
        ({"layer_norm_eps": 10**400}, "layer_norm_eps is 1000"),
        ({"initializer_range": -0.02}, r"initializer_range -0\.02: at least 0"),
        ({"hidden_dropout_prob": 1.5}, r"hidden_dropout_prob 1\.5: a number from 0 to below 1"),
        ({"hidden_dropout_prob": 1}, "hidden_dropout_prob 1: a number from 0 to below 1"),
        ({"hidden_dropout_prob": float("-inf")}, "hidden_dropout_prob is -Infinity"),
        ({"attention_probs_dropout_prob": -0.1}, r"attention_probs_dropout_prob -0\.1: a number from 0"),
        ({"hidden_act": "magic"}, "hidden_act 'magic'"),
        ({"num_attention_heads": 5}, "num_attention_heads"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "electra"}, "model_type 'electra' is not .* malmoi reads, which is bert; choose such a model"),
        ({"model_type": ["bert"]}, "model_type"),
        ({"vocab_size": 10}, "shape"),
    ],
)
def test_a_configuration_that_does_not_fit(folder, changes, says):
    configure(folder, **changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MalmoiError, match=says) as caught:
        malmoi.load(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_a_configuration_without_model_type(folder):
    (folder / "config.json").write_text("{}")
    with pytest.raises(MalmoiError, match=r"config\.json: model_type is missing, .* bert.* add it"):
        malmoi.load(folder)


def test_sizes_that_cannot_be_counted(folder):
    # A file of two gigabytes that takes no room on disk: nothing was ever written into it.
    side = 2**31
    headers = {f"t{number}": {"dtype": "U8", "shape": [1], "data_offsets": [number, number + 1]} for number in range(9)}
    headers["long"] = {"dtype": "U8", "shape": [side], "data_offsets": [9, 9 + side]}
    header = json.dumps(headers).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 9 + side)
    configure(folder, hidden_size=side)
    with pytest.raises(MalmoiError, match=r"config\.json: the sizes are beyond"):
        malmoi.load(folder)


def test_a_shape_that_does_not_fit_is_named_with_both(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.encoder.layer.0.attention.self.query.weight"] = torch.zeros(32, 16)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(MalmoiError, match=r"layer\.0\.attention\.self\.query\.weight .* 32 × 16, .* 32 × 32"):
        malmoi.load(folder)


def test_tensors_that_are_no_floats_are_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.pooler.dense.weight"] = tensors["bert.pooler.dense.weight"].to(torch.int8)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(MalmoiError, match=r"bert\.pooler\.dense\.weight is of type I8"):
        malmoi.load(folder)


def test_one_tensor_under_two_names_is_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.LayerNorm.gamma"] = tensors["bert.embeddings.LayerNorm.weight"].clone()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(MalmoiError, match=r"LayerNorm\.weight and \S*LayerNorm\.gamma|LayerNorm\.gamma and \S*weight"):
        malmoi.load(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_damaged_file_is_named(folder, keep):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:keep])
    with pytest.raises(MalmoiError, match=r"model\.safetensors is damaged"):
        malmoi.load(folder)


def test_a_header_of_nonsense_is_named(folder):
    (folder / "model.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{" * 100)
    with pytest.raises(MalmoiError, match=r"model\.safetensors is damaged"):
        malmoi.load(folder)


@pytest.mark.parametrize(
    "name", ["../other.safetensors", "/etc/other.safetensors", "a/b.safetensors", "..", "x.bin", "..\\x.safetensors"]
)
def test_an_index_points_only_beside_itself(folder, name):
    (folder / "model.safetensors").rename(folder.parent / "other.safetensors")
    index = {"weight_map": {"bert.pooler.dense.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MalmoiError, match=r"index\.json: the file name .* is refused"):
        malmoi.load(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {}}, {"weight_map": "x"}])
def test_an_index_without_files_is_refused(folder, index):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MalmoiError, match=r"index\.json: weight_map"):
        malmoi.load(folder)


def test_a_missing_shard_is_named(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"bert.pooler.dense.weight": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MalmoiError, match=r"model-2\.safetensors is missing"):
        malmoi.load(folder)


def test_a_tensor_in_two_files_is_refused(folder):
    shutil.copy(folder / "model.safetensors", folder / "copy.safetensors")
    (folder / "model.safetensors").rename(folder / "first.safetensors")
    index = {"weight_map": {"a": "first.safetensors", "b": "copy.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MalmoiError, match=r"copy\.safetensors: the tensor \S+ stands already in first\.safetensors"):
        malmoi.load(folder)


def test_pickled_weights_lead_to_convert(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(MalmoiError, match="malmoi convert"):
        malmoi.load(folder)


def test_what_is_missing_is_said(folder, tmp_path):
    with pytest.raises(MalmoiError, match=r"no such folder"):
        malmoi.load(tmp_path / "nowhere")
    with pytest.raises(MalmoiError, match=r"config\.json is a file"):
        malmoi.load(folder / "config.json")
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").unlink()
    with pytest.raises(MalmoiError, match="holds no tokenizer"):
        malmoi.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(MalmoiError, match="holds no weights"):
        malmoi.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MalmoiError, match=r"no config\.json"):
        malmoi.load(folder)


def test_a_tokenizer_of_another_model_is_refused(folder):
    pieces = (folder / "vocab.txt").read_text("utf-8") + "".join(f"새{number}\n" for number in range(50))
    (folder / "vocab.txt").write_text(pieces, "utf-8")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(MalmoiError, match="do not belong together"):
        malmoi.load(folder)


def write_crowd(path, count):
    """A file of so many tensors that hold nothing."""
    entry = '":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ("{" + ",".join(f'"t{number}{entry}' for number in range(count)) + "}").encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("read", [malmoi.load, summarise])
def test_more_tensors_than_a_model_has_are_not_read(folder, monkeypatch, read):
    monkeypatch.setattr(tensors, "_open", lambda path: pytest.fail(f"{path} is opened"))
    write_crowd(folder / "model.safetensors", 20_000)
    with pytest.raises(MalmoiError, match=r"model\.safetensors: it names 20,000 tensors, but .* at most 1,\d\d\d"):
        read(folder)
    # A configuration that claims layers to match does not help.
    configure(folder, num_hidden_layers=10**9)
    write_crowd(folder / "model.safetensors", 160_000)
    with pytest.raises(MalmoiError, match=r"model\.safetensors: the list of its tensors takes 9,\d+,\d+ bytes"):
        read(folder)


def test_the_tensors_of_all_files_are_counted_together(folder, monkeypatch):
    monkeypatch.setattr(tensors, "_open", lambda path: pytest.fail(f"{path} is opened"))
    (folder / "model.safetensors").unlink()
    names = [f"model-{number}.safetensors" for number in range(4)]
    for name in names:
        write_crowd(folder / name, 500)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {name: name for name in names}}))
    with pytest.raises(MalmoiError, match=r"model-\d\.safetensors: it names 1,500 tensors"):
        malmoi.load(folder)


def test_more_labels_than_the_files_have_rows(folder):
    configure(folder, architectures=["BertForSequenceClassification"], num_labels=100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MalmoiError, match=r"config\.json: it names 100,000 labels, but no tensor"):
        malmoi.load(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
