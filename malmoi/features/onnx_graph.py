"""Writes BERT as an ONNX graph, straight from the weights: nothing is traced, so every shape is free.

The operators are those that ONNX Runtime would fuse a traced graph into.

B sequences, T positions.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from malmoi.blocks.head import Head
from malmoi.features.onnx_int8 import add_int8_layer
from malmoi.features.onnx_names import HEAD, INPUTS, LOGITS, POOLER, name_layer
from malmoi.features.onnx_nodes import HIDDEN_SCORE, MICROSOFT, Graph, Weights
from malmoi.systems.bert import BertConfig

# Versions of the format, not newer than needed: 20 has Gelu; ONNX Runtime reads both since 1.18.
_OPSET = 20
_IR_VERSION = 9
_IDS, _MASK, _SEGMENTS = INPUTS


def write_graph(
    config: BertConfig, weights: Weights, *, pooler: bool, int8: bool, head: Head | None = None
) -> onnx.ModelProto:
    """The model as ONNX: ids and mask → every layer's hidden states and, if they are there, the pooler's output and
    what the head for a task gives."""
    graph = Graph(weights)
    layers, size = config.num_hidden_layers, config.hidden_size
    add_layer = add_int8_layer if int8 else _add_layer
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
        pooled = graph.add("Tanh", [graph.linear(first, "pooler")], out=POOLER)
        outputs.insert(1, helper.make_tensor_value_info(POOLER, floats, ["batch", size]))
    if head is not None:
        of_tokens = head.shape in ("tokens", "span")
        logits = graph.linear(x if of_tokens else pooled, "task_head.output", out=LOGITS)
        places = ["batch", "sequence"] if of_tokens else ["batch"]
        outputs.insert(0, helper.make_tensor_value_info(logits, floats, [*places, head.outputs]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in INPUTS]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "bert", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)],
        ir_version=_IR_VERSION,
        producer_name="malmoi",
    )
    if head is not None:
        model.metadata_props.add(key=HEAD, value=head.shape)
    return model


def _embed(graph: Graph, config: BertConfig, out: str) -> str:
    words = graph.add("Gather", [graph.weight("embeddings.words.weight"), _IDS])
    segments = graph.add("Gather", [graph.weight("embeddings.segments.weight"), _SEGMENTS])
    length = graph.add("Shape", [_IDS], start=1, end=2)
    start = graph.constant("start", np.array([0]))
    positions = graph.add("Slice", [graph.weight("embeddings.positions.weight"), start, length, start])  # (T, hidden)
    places = graph.add("Add", [segments, positions])
    return graph.add_and_norm(words, places, "embeddings.norm", config.layer_norm_eps, out=out)


def _add_layer(graph: Graph, config: BertConfig, layer: str, x: str, mask: str, out: str) -> str:
    qkv = f"{layer}.attention.qkv"
    attended = graph.add(
        "Attention",
        [x, graph.constant(f"{qkv}.weight", graph.matrix(qkv)), graph.weight(f"{qkv}.bias"), mask],
        domain=MICROSOFT,
        num_heads=config.num_attention_heads,
        mask_filter_value=HIDDEN_SCORE,
    )
    attended = graph.linear(attended, f"{layer}.attention.output")
    x = graph.add_and_norm(attended, x, f"{layer}.attention_norm", config.layer_norm_eps)
    inside = graph.activate(graph.linear(x, f"{layer}.feed_forward.inner"), config.hidden_act)
    outside = graph.linear(inside, f"{layer}.feed_forward.output")
    return graph.add_and_norm(outside, x, f"{layer}.feed_forward_norm", config.layer_norm_eps, out=out)
