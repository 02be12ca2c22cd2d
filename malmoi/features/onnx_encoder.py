"""A folder that `malmoi convert --to onnx` wrote, ready to give vectors. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from malmoi.checkpoint.location import find_weights
from malmoi.checkpoint.sentence_modules import read_sentence_modules
from malmoi.errors import MalmoiError
from malmoi.features.embedder import Embedder
from malmoi.features.onnx_engine import OnnxEngine
from malmoi.features.vectors import GivesVectors
from malmoi.text.tokenizer import load_tokenizer


class OnnxEncoder(GivesVectors):
    """An encoder and its tokenizer; whatever else a model can do needs torch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokenizer = load_tokenizer(folder)
        self._embedder = Embedder(OnnxEngine(folder), self.tokenizer, read_sentence_modules(folder))

    def fill(self, text: str, top: int = 5) -> NoReturn:
        """A graph of ONNX holds no head for hidden words."""
        find_weights(self.folder)
        raise MalmoiError(f"{self.folder} was opened with ONNX, which fills no gaps; use malmoi.load(…, 'torch').")

    @property
    def embedder(self) -> Embedder:
        return self._embedder
