"""A folder that `malmoi convert --to onnx` wrote, ready to give vectors. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path

from malmoi.checkpoint.location import find_folder
from malmoi.checkpoint.sentence_modules import read_sentence_modules
from malmoi.features.embedder import Embedder
from malmoi.features.onnx_engine import OnnxEngine
from malmoi.features.vectors import GivesVectors
from malmoi.text.tokenizer import load_tokenizer


class OnnxEncoder(GivesVectors):
    """An encoder and its tokenizer; whatever else a model can do needs torch."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = load_tokenizer(folder)
        self._embedder = Embedder(OnnxEngine(folder), self.tokenizer, read_sentence_modules(folder))

    @property
    def embedder(self) -> Embedder:
        return self._embedder


def load_with_onnx(model: str | Path) -> OnnxEncoder:
    """Open the encoder in a folder's onnx/."""
    return OnnxEncoder(find_folder(model))
