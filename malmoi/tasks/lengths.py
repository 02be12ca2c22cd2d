"""How long examples are: in tokens of a model, or in words as long as there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.config import read_object
from malmoi.errors import MalmoiError
from malmoi.tasks.examples import Choice, Example, Question, Tagged
from malmoi.text.panics import catch_panics

if TYPE_CHECKING:
    from malmoi.text.tokenizer import Tokenizer

# Tokenizers that know no limit say so with a number like 10**30.
_MOST_POSITIONS = 1 << 20


class LengthMeter:
    """Measures examples; `limit` is the number of tokens a model takes, where that is known."""

    def __init__(self, tokenizer: Tokenizer | None = None, limit: int | None = None) -> None:
        self.unit = "words" if tokenizer is None else "tokens"
        self.limit = limit
        self._tokenizer = tokenizer

    @catch_panics()
    def measure(self, examples: Sequence[Example]) -> list[int]:
        """The length of each example with its [CLS] and [SEP]; of choices that of the longest."""
        texts = [_texts(example) for example in examples]
        if self._tokenizer is None:
            return [max(sum(len(part.split()) for part in parts) for parts in ways) for ways in texts]
        flat = [parts[0] if len(parts) == 1 else parts for ways in texts for parts in ways]
        lengths = (len(encoding.ids) for encoding in self._tokenizer.backend.encode_batch_fast(flat))
        return [max(next(lengths) for _ in ways) for ways in texts]


def open_meter(model: str | Path | None) -> LengthMeter:
    """The meter of a model's folder, of a tokenizer's folder or file, or of a hub id."""
    if model is None:
        return LengthMeter()
    from malmoi.checkpoint.file_names import CONFIG
    from malmoi.checkpoint.local_models import is_run
    from malmoi.checkpoint.location import find_folder
    from malmoi.text.tokenizer import load_tokenizer

    path = Path(model)
    if not path.exists() or is_run(path):
        path = find_folder(model)
    tokenizer = load_tokenizer(path)
    limit = tokenizer.config.get("model_max_length")
    if (path / CONFIG).is_file():
        limit = read_object(path / CONFIG).get("max_position_embeddings", limit)
    if not isinstance(limit, int | float) or isinstance(limit, bool) or limit > _MOST_POSITIONS:
        return LengthMeter(tokenizer)
    if limit < 1:
        raise MalmoiError(f"{path}: a model of {limit} positions cannot read anything")
    return LengthMeter(tokenizer, int(limit))


def _texts(example: Example) -> list[tuple[str, ...]]:
    """The texts a model is shown at once; several ways to show it for choices."""
    if isinstance(example, Tagged):
        return [(example.lay_out()[0],)]
    if isinstance(example, Question):
        return [(example.question, example.context)]
    if isinstance(example, Choice):
        return [(example.prompt, choice) for choice in example.choices]
    return [(example.text,) if example.pair is None else (example.text, example.pair)]
