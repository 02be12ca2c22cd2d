"""What an exported model calls its inputs and outputs, and where its files lie: the layout that optimum,
sentence-transformers and transformers.js read."""

from __future__ import annotations

from importlib.util import find_spec

from malmoi.checkpoint.location import ONNX_FOLDER
from malmoi.errors import MalmoiError

FOLDER = ONNX_FOLDER
MODEL = "model.onnx"
INT8_MODEL = "model_int8.onnx"

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LAST = "last_hidden_state"
POOLER = "pooler_output"


def name_layer(number: int, layers: int) -> str:
    """The output that holds the hidden states of a layer; the last one has the name everybody asks for."""
    return LAST if number == layers else f"hidden_states.{number}"


def check_installed() -> None:
    """Say what is missing where the extra of ONNX is not installed."""
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise MalmoiError(f'an ONNX model needs the package {package}: pip install "malmoi[onnx]"')
