"""Products of bytes: exactly what they should be, the same on every processor and in every batch, near the floats."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from models import SENTENCES, make_model, padded_inputs
from onnx import TensorProto, helper

import malmoi
from malmoi.features.onnx_engine import OnnxEngine
from malmoi.features.onnx_export import export_onnx
from malmoi.features.onnx_int8 import multiply, round_activations, round_matrix, round_rows
from malmoi.features.onnx_nodes import Graph
from malmoi.systems.bert import Bert

# A byte has 255 steps from the largest number of a row to its negative. With numbers spread as by a bell curve, of
# which the largest of some dozens is about three deviations, rounding moves each by 3 / 127 / √12 of a deviation: 0.7%;
# the weights' rounding as much again. A layer has four products one behind the other, which add up to 2% in squares,
# and attention and norms of random weights can double that. (Found: 0.4% to 1.2%.)
_A_LAYER = 0.04


def run_nodes(add, x):
    """The output of one node or some, as ONNX Runtime computes it."""
    graph = Graph({})
    out = add(graph)
    sizes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", out)]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "test", sizes[:1], sizes[1:], graph.constants),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run([out], {"x": x})[0]


def make_product(lowest):
    """Rows of numbers that bytes hold exactly, each with a scale of its own, and a matrix."""
    random = np.random.default_rng(0)
    steps = random.integers(lowest, 128, (7, 33))
    steps[:, 0] = 127
    x = (steps * 2.0 ** -np.arange(7)[:, None]).astype(np.float32)
    return steps, x, random.normal(size=(33, 5)).astype(np.float32)


def test_a_product_is_the_sum_of_its_bytes():
    steps, x, matrix = make_product(-127)
    rounded, scales = round_matrix(matrix)
    found = run_nodes(lambda graph: multiply(graph, round_rows(graph, "x"), "m", matrix), x)
    expected = (steps @ rounded.astype(np.int64)) * scales * 2.0 ** -np.arange(7)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.abs(rounded * scales - matrix).max() <= scales.max() * 0.501


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "silu", "relu", "tanh"])
def test_no_activation_is_cut_off(pretrained, activation):
    """All that an activation can give has a byte of its own: nothing is further away than half a step."""
    x = np.linspace(-8, [[0.0], [0.05], [0.9], [6.0]], 999, axis=-1, dtype=np.float32).reshape(4, 999)

    def add(graph):
        inside = graph.activate("x", activation)
        rounded = round_activations(graph, inside, activation)
        return multiply(graph, rounded, "m", np.eye(999, dtype=np.float32))

    found, exact = run_nodes(add, x), run_nodes(lambda graph: graph.activate("x", activation), x)
    steps = np.maximum(exact.max(axis=1), 1.0) / 127
    assert (np.abs(found - exact).max(axis=1) <= 0.51 * steps).all()


@pytest.mark.parametrize("shape", [(64, 300), (33, 300), (1, 3)])
def test_no_processor_overflows(shape):
    """x86 without VNNI adds two products of bytes in 16 bits; the worst bytes there are do not leave them."""
    random = np.random.default_rng(0)
    matrix = random.standard_t(2, size=shape).astype(np.float32)
    matrix[:, 0] = 1  # neighbours that are both the largest
    matrix[:, 1] = 0
    weights = round_matrix(matrix)[0].astype(np.int64)
    pairs = np.concatenate([weights, np.zeros_like(weights[: len(weights) % 2])]).reshape(-1, 2, shape[1])
    for bytes_ in ((255, 255), (255, 0), (0, 255)):
        sums = (pairs * np.array(bytes_)[None, :, None]).sum(axis=1)
        assert sums.min() >= -(2**15) and sums.max() < 2**15
    # No column is given up for that: its largest numbers still use most of a byte.
    assert (np.abs(weights[:, 2:]).max(axis=0) >= 63).all() and not weights[:, 1].any()


@pytest.fixture(scope="module")
def pretrained():
    return make_model()


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "silu", "tanh"])
def test_layers_stay_near(pretrained, tmp_path, activation):
    config = replace(pretrained.config, hidden_act=activation)
    made = malmoi.Pretrained("bert", config, pretrained.tokenizer, Bert(config).eval())
    made.model.load_state_dict(pretrained.model.state_dict())
    export_onnx(made, tmp_path / "model", int8=True)
    engine = OnnxEngine(tmp_path / "model", threads=1)
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool().numpy()
    with torch.no_grad():
        exact = made.model(**inputs, output_hidden_states=True).hidden_states
    found = engine.run(inputs["input_ids"].numpy(), inputs["token_type_ids"].numpy(), real, [0, 1, 2], False)
    np.testing.assert_allclose(found.hidden_states[0][real], exact[0].numpy()[real], atol=1e-5)
    for layer in (1, 2):
        wanted = exact[layer].numpy()[real]
        error = np.linalg.norm(found.hidden_states[layer][real] - wanted) / np.linalg.norm(wanted)
        assert 0 < error < _A_LAYER * layer


def test_the_graph_is_valid(pretrained, tmp_path):
    onnx.checker.check_model(onnx.load(export_onnx(pretrained, tmp_path / "model", int8=True)))


def test_a_text_has_one_vector(pretrained, tmp_path):
    """Whatever stands beside it in its batch, and however much is padded."""
    export_onnx(pretrained, tmp_path / "model", int8=True)
    model = malmoi.load(tmp_path / "model", engine="onnx")
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    mask = inputs["attention_mask"].bool().numpy()
    ids = inputs["input_ids"].numpy()
    together = model.embedder.engine.run(ids, np.zeros_like(ids), mask, [2], True)
    for row, length in enumerate(mask.sum(axis=1)):
        one = ids[row : row + 1, :length]
        alone = model.embedder.engine.run(one, np.zeros_like(one), None, [2], True)
        np.testing.assert_allclose(together.hidden_states[2][row, :length], alone.hidden_states[2][0], atol=1e-4)
        np.testing.assert_allclose(together.pooler_output[row], alone.pooler_output[0], atol=1e-4)


# --- real weights and real sentences


def test_real_sentences(folder, data, tmp_path):
    """People's judgements are met as well as with floats, and a sentence has the same vector alone and among others."""
    scipy = pytest.importorskip("scipy.stats")
    lines = [line.split("\t") for line in (data / "sts-b" / "dev.tsv").read_text("utf-8").splitlines()[1::4]]
    sentences, scores = [line[7] for line in lines] + [line[8] for line in lines], [float(line[9]) for line in lines]
    model = malmoi.load(folder)
    written = export_onnx(model, tmp_path / "int8", int8=True, source=folder)
    assert written.stat().st_size < 60e6
    light = malmoi.load(tmp_path / "int8", engine="onnx")
    exact, rounded = (one.embed(sentences, truncate="right") for one in (model, light))
    cosines = (exact * rounded).sum(axis=1)
    assert len(scores) == 375 and cosines.mean() > 0.997 and cosines.min() > 0.985

    def correlate(vectors):
        first, second = np.split(vectors, 2)
        return 100 * scipy.spearmanr((first * second).sum(axis=1), scores).statistic

    assert correlate(rounded) == pytest.approx(correlate(exact), abs=0.2)
    alone = np.concatenate([light.embed([text]) for text in sentences[:40]])
    assert (alone * rounded[:40]).sum(axis=1).min() > 0.99999
