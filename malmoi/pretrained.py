"""What people hold in their hands: a model that fills gaps, gives vectors and so on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from malmoi.checkpoint.bundle import Bundle, create_bundle, load_bundle
from malmoi.features.embedder import Embedder
from malmoi.features.filling import Fill, fill_gaps
from malmoi.features.torch_engine import TorchEngine
from malmoi.features.vectors import GivesVectors
from malmoi.tasks.methods import DoesTasks
from malmoi.text.tokenizer import Tokenizer


class Pretrained(Bundle, GivesVectors, DoesTasks):
    """A model, its tokenizer and its configuration, ready for use. `model` is the torch module itself."""

    @property
    def embedder(self) -> Embedder:
        """What makes vectors of this model as it now is."""
        return Embedder(TorchEngine(self), self.tokenizer, self.sentence)

    def fill(self, text: str, top: int = 5) -> list[list[Fill]]:
        """For each [MASK] of the text, the pieces that fit best."""
        return fill_gaps(self, text, top)


def load_with_torch(model: str | Path) -> Pretrained:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode."""
    return Pretrained(**vars(load_bundle(model)))


def create(preset: str | Any, tokenizer: Tokenizer, seed: int = 0) -> Pretrained:
    """A new model for a tokenizer, from a preset such as bert-mini or from a configuration.

    Its weights depend on the seed only.
    """
    return Pretrained(**vars(create_bundle(preset, tokenizer, seed)))
