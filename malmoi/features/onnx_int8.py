"""A layer of BERT whose matrix products multiply bytes, as nodes of an ONNX graph.

Weights are rounded once, column by column. Activations are rounded while the model runs, every token with a scale of
its own: so the vector of a text does not depend on what else is in its batch. What rounding loses is kept small:
- channels that a layer norm makes large are divided before rounding, and their weights multiplied instead;
- the inside of the feed-forward network is hardly ever below zero, so most of the bytes stand for what is above;
- the residual stream, the layer norms and the attention itself are floats.

Processors without instructions made for this (x86 before VNNI) add products in pairs, in 16 bits that overflow
silently. `round_matrix` therefore keeps any two neighbours of a column small enough: sums are the same everywhere.

N tokens of all sequences, D channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.features.onnx_nodes import HIDDEN_SCORE, MICROSOFT, Graph, Weights
from malmoi.systems.bert import BertConfig

_LARGEST_BYTE = 255
_LARGEST_WEIGHT = 127
# Two neighbours times the largest byte have to fit into 16 bits: 255 · 128 < 2¹⁵.
_LARGEST_PAIR = 128
_TINY = float(np.finfo(np.float32).tiny)

# The byte that stands for zero: in the middle, or further down where numbers are hardly ever negative.
_MIDDLE, _LOW = 128, 64
# How far below zero an activation reaches.
_FLOORS = {"gelu": 0.17, "gelu_new": 0.171, "gelu_pytorch_tanh": 0.171, "silu": 0.279, "relu": 0.0, "tanh": 1.0}


@dataclass(frozen=True)
class Rounded:
    """Activations as bytes (N, D): the number each one stands for is (byte - zero) · scale."""

    bytes: str
    scale: str  # (N, 1)
    zero: str


def add_int8_layer(graph: Graph, config: BertConfig, layer: str, x: str, mask: str, out: str) -> str:
    """(B, T, hidden) → (B, T, hidden)"""
    shape = graph.add("Shape", [x])
    x = graph.add("Reshape", [x, graph.shared("tokens", np.array([-1, config.hidden_size]))])  # (N, hidden)
    attended = _attend(graph, config, f"{layer}.attention", x, mask, shape)
    x = _add_and_norm(graph, config, x, attended, f"{layer}.attention.output", f"{layer}.attention_norm")

    inner, output = f"{layer}.feed_forward.inner", f"{layer}.feed_forward.output"
    spans = _span_channels(graph.weights, f"{layer}.attention_norm")
    even = round_rows(graph, graph.add("Mul", [x, graph.constant(f"{inner}.even", 1 / spans)]))
    inside = multiply(graph, even, inner, graph.matrix(inner) * spans[:, None])
    inside = graph.add_and_activate(inside, graph.weight(f"{inner}.bias"), config.hidden_act)
    outside = multiply(graph, round_activations(graph, inside, config.hidden_act), output, graph.matrix(output))
    x = _add_and_norm(graph, config, x, outside, output, f"{layer}.feed_forward_norm")
    return graph.add("Reshape", [x, shape], out=out)


def _attend(graph: Graph, config: BertConfig, name: str, x: str, mask: str, shape: str) -> str:
    """(N, hidden) → (N, hidden), without the bias of the matrix that comes last."""
    rounded = round_rows(graph, x)
    matrices = np.split(graph.matrix(f"{name}.qkv"), 3, axis=1)
    parts = [
        graph.add("Reshape", [multiply(graph, rounded, f"{name}.{part}", matrix), shape])
        for part, matrix in zip(("query", "key", "value"), matrices, strict=True)
    ]
    attended = graph.add(
        "MultiHeadAttention",
        [*parts, graph.weight(f"{name}.qkv.bias"), mask],
        domain=MICROSOFT,
        num_heads=config.num_attention_heads,
        mask_filter_value=HIDDEN_SCORE,
    )
    attended = graph.add("Reshape", [attended, graph.shared("tokens", np.array([-1, config.hidden_size]))])
    return multiply(graph, round_rows(graph, attended), f"{name}.output", graph.matrix(f"{name}.output"))


def _add_and_norm(graph: Graph, config: BertConfig, x: str, change: str, linear: str, norm: str) -> str:
    # One node that does both (SkipLayerNormalization) is slower than these by a tenth of the whole model.
    total = graph.add("Add", [graph.add("Add", [x, change]), graph.weight(f"{linear}.bias")])
    inputs = [total, graph.weight(f"{norm}.weight"), graph.weight(f"{norm}.bias")]
    return graph.add("LayerNormalization", inputs, epsilon=config.layer_norm_eps, axis=-1)


def round_rows(graph: Graph, x: str) -> Rounded:
    """Bytes for numbers of either sign."""
    axis = graph.shared("channels", np.array([-1]))
    lowest = graph.add("ReduceMin", [x, axis], keepdims=1)
    largest = graph.add("Max", [graph.add("ReduceMax", [x, axis], keepdims=1), graph.add("Neg", [lowest])])
    return _round(graph, x, largest, _MIDDLE, _TINY)


def round_activations(graph: Graph, x: str, activation: str) -> Rounded:
    """Bytes for what an activation gives."""
    floor = _FLOORS[activation]
    zero = _MIDDLE if floor == 1 else _LOW if floor else 0
    largest = graph.add("ReduceMax", [x, graph.shared("channels", np.array([-1]))], keepdims=1)
    return _round(graph, x, largest, zero, max(floor / max(zero, 1), _TINY))


def _round(graph: Graph, x: str, largest: str, zero: int, least: float) -> Rounded:
    """The largest number of each row becomes the largest byte; a scale is at least `least`."""
    step = graph.shared(f"step.{zero}", np.array(1 / (_LARGEST_BYTE - zero), np.float32))
    bottom = graph.shared(f"least.{zero}", np.array(least, np.float32))
    scale = graph.add("Max", [graph.add("Mul", [largest, step]), bottom])  # (N, 1)
    scales = graph.add("Reshape", [scale, graph.shared("row", np.array([-1]))])
    zeros = graph.add(
        "Expand", [graph.shared(f"zeros.{zero}", np.array([zero], np.uint8)), graph.add("Shape", [scales])]
    )
    rounded = graph.add("QuantizeLinear", [x, scales, zeros], axis=0)
    return Rounded(rounded, scale, graph.shared(f"zero.{zero}", np.array(zero, np.uint8)))


def multiply(graph: Graph, x: Rounded, name: str, matrix: NDArray[np.float32]) -> str:
    """(N, in) → (N, out)"""
    rounded, scales = round_matrix(matrix)
    weight, one = graph.constant(f"{name}.weight", rounded), graph.shared("one", np.array(1, np.float32))
    inputs = [x.bytes, weight, one, graph.constant(f"{name}.scales", scales), x.zero]
    product = graph.add("MatMulIntegerToFloat", inputs, domain=MICROSOFT)
    return graph.add("Mul", [product, x.scale])


def round_matrix(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix (in, out) as bytes, and a scale for each of its columns.

    Neighbours are the numbers 0 and 1 of a column, 2 and 3 and so on; those of unlike signs cannot overflow.
    """
    even = np.concatenate([matrix, np.zeros_like(matrix[: len(matrix) % 2])])
    pairs = np.abs(even[0::2] + even[1::2]).max(axis=0)
    # Rounding may add a half to each of two.
    scales = np.maximum(np.abs(matrix).max(axis=0) / _LARGEST_WEIGHT, pairs / (_LARGEST_PAIR - 1))
    # A column of zeros has no largest number; any scale serves it.
    scales = np.maximum(scales, _TINY * _LARGEST_WEIGHT).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales


def _span_channels(weights: Weights, norm: str) -> NDArray[np.float32]:
    """How far each channel reaches after a layer norm, by the norm's own weights: its mean and three deviations."""
    spans = np.abs(weights[f"{norm}.bias"]) + 3 * np.abs(weights[f"{norm}.weight"])
    largest = max(float(spans.max()), _TINY)
    # A channel that is next to nothing stays so.
    return np.asarray(np.maximum(spans, largest / 1000) / largest, np.float32)
