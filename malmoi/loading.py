"""`malmoi.load`: a model with torch and all it can do, or its vectors alone, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from malmoi.checkpoint.location import find_folder, find_weights
from malmoi.features.onnx_names import FOLDER

if TYPE_CHECKING:
    from malmoi.features.onnx_encoder import OnnxEncoder
    from malmoi.pretrained import Pretrained

EngineName = Literal["torch", "onnx"]


@overload
def load(model: str | Path, engine: Literal["torch"]) -> Pretrained: ...
@overload
def load(model: str | Path, engine: Literal["onnx"]) -> OnnxEncoder: ...
@overload
def load(model: str | Path, engine: None = None) -> Any: ...
def load(model: str | Path, engine: EngineName | None = None) -> Pretrained | OnnxEncoder:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode.

    The files of the folder decide what computes: one that `malmoi convert --to onnx` wrote is opened without torch.
    """
    folder = find_folder(model)
    # Each engine is imported only where it is needed.
    if (engine or choose_engine(folder)) == "onnx":
        from malmoi.features.onnx_encoder import OnnxEncoder

        return OnnxEncoder(folder)
    from malmoi.pretrained import load_with_torch

    return load_with_torch(folder)


def choose_engine(folder: Path) -> EngineName:
    """The engine that a folder's files are for."""
    if (folder / FOLDER).is_dir() and not any(folder.glob("*.safetensors*")):
        return "onnx"
    find_weights(folder)  # which says what is missing
    return "torch"
