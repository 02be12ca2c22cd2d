"""What an exported model calls its inputs and outputs, and where its files lie: the layout that optimum,
sentence-transformers and transformers.js read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from malmoi.checkpoint.file_names import ONNX_FOLDER
from malmoi.checkpoint.location import find_weights
from malmoi.errors import MalmoiError

EngineName = Literal["torch", "onnx"]

FOLDER = ONNX_FOLDER
MODEL = "model.onnx"
INT8_MODEL = "model_int8.onnx"

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LAST = "last_hidden_state"
POOLER = "pooler_output"
LOGITS = "logits"
# Where a file says for what shape of head its logits are.
HEAD = "malmoi.head"


def name_layer(number: int, layers: int) -> str:
    """The output that holds the hidden states of a layer; the last one has the name everybody asks for."""
    return LAST if number == layers else f"hidden_states.{number}"


def choose_engine(folder: Path) -> EngineName:
    """The engine that a folder's files are for."""
    if (folder / FOLDER).is_dir() and not any(folder.glob("*.safetensors*")):
        return "onnx"
    find_weights(folder)  # which says what is missing
    return "torch"


def check_installed() -> None:
    """Say what is missing where the extra of ONNX is not installed."""
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise MalmoiError(f'an ONNX model needs the package {package}: pip install "malmoi[onnx]"')
