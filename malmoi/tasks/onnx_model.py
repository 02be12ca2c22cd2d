"""A folder that `malmoi convert --to onnx` wrote, ready for use: vectors and its task. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn, cast, get_args

from malmoi.blocks.head import Head, Shape
from malmoi.checkpoint.file_names import CONFIG
from malmoi.checkpoint.head_fields import read_head
from malmoi.checkpoint.location import find_weights
from malmoi.checkpoint.sentence_modules import read_sentence_modules
from malmoi.config import read_object
from malmoi.errors import MalmoiError
from malmoi.features.embedder import Embedder
from malmoi.features.onnx_engine import OnnxEngine
from malmoi.features.vectors import GivesVectors
from malmoi.tasks.methods import DoesTasks
from malmoi.text.tokenizer import load_tokenizer


class OnnxModel(GivesVectors, DoesTasks):
    """An encoder, its tokenizer and its head for a task if it has one; what else a model can do needs torch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokenizer = load_tokenizer(folder)
        self.sentence = read_sentence_modules(folder)
        self.model = OnnxEngine(folder)
        self.head = _read_head(folder, self.model.head)
        # What is not in the file is not in the model: nothing has fresh weights.
        self.absent: frozenset[str] = frozenset()
        self._embedder = Embedder(self.model, self.tokenizer, self.sentence)

    @property
    def max_positions(self) -> int:
        return self.model.max_positions

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def fill(self, text: str, top: int = 5) -> NoReturn:
        """A graph of ONNX holds no head for hidden words."""
        find_weights(self.folder)
        raise MalmoiError(f"{self.folder} was opened with ONNX, which fills no gaps; use malmoi.load(…, 'torch').")


def _read_head(folder: Path, shape: str | None) -> Head | None:
    if shape is None:
        return None
    if shape not in get_args(Shape):
        raise MalmoiError(f"{folder}: a head of the shape {shape!r} is not one that malmoi knows.")
    return read_head(cast(Shape, shape), read_object(folder / CONFIG), folder / CONFIG)
