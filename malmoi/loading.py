"""`malmoi.load`: a model with torch and all it can do, or its vectors alone, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from malmoi.checkpoint.location import find_folder
from malmoi.features.onnx_names import EngineName, choose_engine

if TYPE_CHECKING:
    from malmoi.pretrained import Pretrained
    from malmoi.tasks.onnx_model import OnnxModel


@overload
def load(model: str | Path, engine: Literal["torch"]) -> Pretrained: ...
@overload
def load(model: str | Path, engine: Literal["onnx"]) -> OnnxModel: ...
@overload
def load(model: str | Path, engine: None = None) -> Any: ...
def load(model: str | Path, engine: EngineName | None = None) -> Pretrained | OnnxModel:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode.

    The files of the folder decide what computes: one that `malmoi convert --to onnx` wrote is opened without torch.
    """
    folder = find_folder(model)
    # Each engine is imported only where it is needed.
    if (engine or choose_engine(folder)) == "onnx":
        from malmoi.tasks.onnx_model import OnnxModel

        return OnnxModel(folder)
    from malmoi.pretrained import load_with_torch

    return load_with_torch(folder)
