"""The nodes and constants of an ONNX graph, as they are added, and what more than one kind of layer consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Weights = Mapping[str, NDArray[np.float32]]

MICROSOFT = "com.microsoft"
# Finite, so that a row without any token is uniform instead of undefined.
HIDDEN_SCORE = float(np.finfo(np.float32).min)


class Graph:
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

    def shared(self, name: str, value: NDArray[Any]) -> str:
        """A constant that several nodes use."""
        if all(one.name != name for one in self.constants):
            self.constant(name, value)
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def matrix(self, name: str) -> NDArray[np.float32]:
        """The matrix of a linear layer as ONNX multiplies it: (in, out)."""
        return self.weights[f"{name}.weight"].T

    def linear(self, x: str, name: str, *, out: str = "") -> str:
        product = self.add("MatMul", [x, self.constant(f"{name}.weight", self.matrix(name))])
        return self.add("Add", [product, self.weight(f"{name}.bias")], out=out)

    def add_and_norm(self, x: str, skipped: str, name: str, epsilon: float, *, bias: str = "", out: str = "") -> str:
        inputs = [x, skipped, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.add(
            "SkipLayerNormalization", [*inputs, bias] if bias else inputs, domain=MICROSOFT, out=out, epsilon=epsilon
        )

    def activate(self, x: str, activation: str) -> str:
        if activation == "silu":
            return self.add("Mul", [x, self.add("Sigmoid", [x])])
        operator, settings = _ACTIVATIONS[activation]
        return self.add(operator, [x], **settings)

    def add_and_activate(self, x: str, bias: str, activation: str) -> str:
        if activation == "gelu":
            return self.add("BiasGelu", [x, bias], domain=MICROSOFT)
        return self.activate(self.add("Add", [x, bias]), activation)


_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
}
