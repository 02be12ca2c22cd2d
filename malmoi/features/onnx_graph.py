"""Writes BERT as an ONNX graph, straight from the weights: nothing is traced, so every shape is free.

The operators are those that ONNX Runtime would fuse a traced graph into. As int8, the matrix products of the layers
multiply bytes: weights are rounded once, column by column; activations while the model runs, with one scale for all of
a product's input. Two things keep what that one scale loses small:
- channels that a layer norm makes large are divided before rounding, and their weights multiplied instead;
- each row of the feed-forward network's inside is divided by its largest number before, and multiplied by it after.

B sequences, T positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from malmoi.features.onnx_names import INPUTS, POOLER, name_layer
from malmoi.systems.bert import BertConfig

Weights = Mapping[str, NDArray[np.float32]]

# Versions of the format, not newer than needed: 20 has Gelu; ONNX Runtime reads both since 1.18.
_OPSET = 20
_IR_VERSION = 9
_MICROSOFT = "com.microsoft"
_IDS, _MASK, _SEGMENTS = INPUTS
_LARGEST_INT8 = 127
# Finite, so that a row without any token is uniform instead of undefined.
_HIDDEN_SCORE = float(np.finfo(np.float32).min)
# A row whose numbers are all small is not blown up: they hardly count.
_SMALLEST_ROW_SCALE = 0.3


def write_graph(config: BertConfig, weights: Weights, *, pooler: bool, int8: bool) -> onnx.ModelProto:
    """The encoder as ONNX: ids and mask → every layer's hidden states and, if it is there, the pooler's output."""
    graph = _Graph(weights)
    layers, size = config.num_hidden_layers, config.hidden_size
    add_layer = _add_int8_layer if int8 else _add_layer
    mask = graph.add("Cast", [_MASK], to=TensorProto.INT32)  # (B, T)
    x = _embed(graph, config, name_layer(0, layers))  # (B, T, hidden)
    for number in range(layers):
        x = add_layer(graph, config, f"layers.{number}", x, mask, name_layer(number + 1, layers))
    floats = TensorProto.FLOAT
    outputs = [
        helper.make_tensor_value_info(name_layer(number, layers), floats, ["batch", "sequence", size])
        for number in (layers, *range(layers))
    ]
    if pooler:
        first = graph.add("Gather", [x, graph.constant("first", np.array(0))], axis=1)  # (B, hidden)
        graph.add("Tanh", [graph.linear(first, "pooler")], out=POOLER)
        outputs.insert(1, helper.make_tensor_value_info(POOLER, floats, ["batch", size]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in INPUTS]
    return helper.make_model(
        helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)],
        ir_version=_IR_VERSION,
        producer_name="malmoi",
    )


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, inputs: list[str], *, domain: str = "", out: str = "", **settings: Any) -> str:
        """Add a node with one output and return the output's name."""
        out = out or f"{operator}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [out], out, domain=domain, **settings))
        return out

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def matrix(self, name: str) -> NDArray[np.float32]:
        """The matrix of a linear layer as ONNX multiplies it: (in, out)."""
        return self.weights[f"{name}.weight"].T

    def linear(self, x: str, name: str) -> str:
        product = self.add("MatMul", [x, self.constant(f"{name}.weight", self.matrix(name))])
        return self.add("Add", [product, self.weight(f"{name}.bias")])

    def add_and_norm(self, x: str, skipped: str, name: str, epsilon: float, *, bias: str = "", out: str = "") -> str:
        inputs = [x, skipped, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.add(
            "SkipLayerNormalization", [*inputs, bias] if bias else inputs, domain=_MICROSOFT, out=out, epsilon=epsilon
        )

    def activate(self, x: str, activation: str) -> str:
        if activation == "silu":
            return self.add("Mul", [x, self.add("Sigmoid", [x])])
        operator, settings = _ACTIVATIONS[activation]
        return self.add(operator, [x], **settings)


_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
}


def _embed(graph: _Graph, config: BertConfig, out: str) -> str:
    words = graph.add("Gather", [graph.weight("embeddings.words.weight"), _IDS])
    segments = graph.add("Gather", [graph.weight("embeddings.segments.weight"), _SEGMENTS])
    length = graph.add("Shape", [_IDS], start=1, end=2)
    start = graph.constant("start", np.array([0]))
    positions = graph.add("Slice", [graph.weight("embeddings.positions.weight"), start, length, start])  # (T, hidden)
    places = graph.add("Add", [segments, positions])
    return graph.add_and_norm(words, places, "embeddings.norm", config.layer_norm_eps, out=out)


def _add_layer(graph: _Graph, config: BertConfig, layer: str, x: str, mask: str, out: str) -> str:
    qkv = f"{layer}.attention.qkv"
    attended = graph.add(
        "Attention",
        [x, graph.constant(f"{qkv}.weight", graph.matrix(qkv)), graph.weight(f"{qkv}.bias"), mask],
        domain=_MICROSOFT,
        num_heads=config.num_attention_heads,
        mask_filter_value=_HIDDEN_SCORE,
    )
    attended = graph.linear(attended, f"{layer}.attention.output")
    x = graph.add_and_norm(attended, x, f"{layer}.attention_norm", config.layer_norm_eps)
    inside = graph.activate(graph.linear(x, f"{layer}.feed_forward.inner"), config.hidden_act)
    outside = graph.linear(inside, f"{layer}.feed_forward.output")
    return graph.add_and_norm(outside, x, f"{layer}.feed_forward_norm", config.layer_norm_eps, out=out)


def _add_int8_layer(graph: _Graph, config: BertConfig, layer: str, x: str, mask: str, out: str) -> str:
    qkv = f"{layer}.attention.qkv"
    rounded, scale, zero = f"{layer}.rounded", f"{layer}.scale", f"{layer}.zero"
    graph.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [rounded, scale, zero], rounded))
    matrix, scales = _round_matrix(graph, qkv, graph.matrix(qkv))
    zeros = graph.constant(f"{qkv}.zero", np.zeros(3 * config.hidden_size, np.int8))
    attended = graph.add(
        "QAttention",
        [rounded, matrix, graph.weight(f"{qkv}.bias"), scale, scales, mask, zero, zeros],
        domain=_MICROSOFT,
        num_heads=config.num_attention_heads,
        mask_filter_value=_HIDDEN_SCORE,
    )
    output = f"{layer}.attention.output"
    attended = _multiply(graph, attended, output, graph.matrix(output), graph.weight(f"{output}.bias"))
    x = graph.add_and_norm(attended, x, f"{layer}.attention_norm", config.layer_norm_eps)

    inner = f"{layer}.feed_forward.inner"
    spans = _span_channels(graph.weights, f"{layer}.attention_norm")
    even = graph.add("Mul", [x, graph.constant(f"{inner}.even", 1 / spans)])
    matrix_inner = graph.matrix(inner) * spans[:, None]
    inside = graph.activate(
        _multiply(graph, even, inner, matrix_inner, graph.weight(f"{inner}.bias")), config.hidden_act
    )

    output = f"{layer}.feed_forward.output"
    largest = graph.add("ReduceMax", [inside, graph.constant(f"{output}.axis", np.array([-1]))], keepdims=1)
    least = graph.constant(f"{output}.least", np.array(_SMALLEST_ROW_SCALE, np.float32))
    largest = graph.add("Max", [largest, least])  # (B, T, 1)
    outside = _multiply(graph, graph.add("Div", [inside, largest]), output, graph.matrix(output), "")
    outside = graph.add("Mul", [outside, largest])
    bias = graph.weight(f"{output}.bias")
    return graph.add_and_norm(outside, x, f"{layer}.feed_forward_norm", config.layer_norm_eps, bias=bias, out=out)


def _multiply(graph: _Graph, x: str, name: str, matrix: NDArray[np.float32], bias: str) -> str:
    rounded, scales = _round_matrix(graph, name, matrix)
    inputs = [x, rounded, scales, "", bias] if bias else [x, rounded, scales]
    return graph.add("DynamicQuantizeMatMul", inputs, domain=_MICROSOFT)


def _round_matrix(graph: _Graph, name: str, matrix: NDArray[np.float32]) -> tuple[str, str]:
    """A matrix (in, out) as bytes, and a scale for each of its columns."""
    # A column of zeros has no largest number; any scale serves it.
    scales = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float32).tiny * _LARGEST_INT8) / _LARGEST_INT8
    rounded = np.rint(matrix / scales).astype(np.int8)
    return graph.constant(f"{name}.weight", rounded), graph.constant(f"{name}.scales", scales.astype(np.float32))


def _span_channels(weights: Weights, norm: str) -> NDArray[np.float32]:
    """How far each channel reaches after a layer norm, by the norm's own weights: its mean and three deviations."""
    spans = np.abs(weights[f"{norm}.bias"]) + 3 * np.abs(weights[f"{norm}.weight"])
    largest = max(float(spans.max()), float(np.finfo(np.float32).tiny))
    # A channel that is next to nothing stays so.
    return np.asarray(np.maximum(spans, largest / 1000) / largest, np.float32)
