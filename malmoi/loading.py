"""`malmoi.load`: a model with torch and all it can do, or its vectors alone, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from malmoi.checkpoint.location import find_weights
from malmoi.features.onnx_names import FOLDER

if TYPE_CHECKING:
    from malmoi.features.onnx_encoder import OnnxEncoder
    from malmoi.pretrained import Pretrained

EngineName = Literal["torch", "onnx"]


@overload
def load(model: str | Path, engine: Literal["torch"] = "torch") -> Pretrained: ...
@overload
def load(model: str | Path, engine: Literal["onnx"]) -> OnnxEncoder: ...
def load(model: str | Path, engine: EngineName = "torch") -> Pretrained | OnnxEncoder:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode.

    With engine="onnx" a folder that `malmoi convert --to onnx` wrote gives its vectors, and torch is never imported.
    """
    # Each engine is imported only where it is asked for.
    if engine == "onnx":
        from malmoi.features.onnx_encoder import load_with_onnx

        return load_with_onnx(model)
    from malmoi.pretrained import load_with_torch

    return load_with_torch(model)


def choose_engine(folder: Path) -> EngineName:
    """The engine that a folder's files are for."""
    if (folder / FOLDER).is_dir() and not any(folder.glob("*.safetensors*")):
        return "onnx"
    find_weights(folder)  # which says what is missing
    return "torch"
