"""How long examples are, in tokens of a model or, where there is none, in words; and how long sequences are to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
# As long as this sequences may always be: batches are of like lengths, so room that no example needs costs nothing.
USUAL_SEQ_LEN = 128
_SHARE_TAKEN_WHOLE = 0.99


class LengthMeter:
    """Measures examples; `limit` is the number of tokens a model takes, where that is known."""

    def __init__(self, tokenizer: Tokenizer | None = None, limit: int | None = None) -> None:
        self.unit = "words" if tokenizer is None else "tokens"
        self.limit = limit
        self._tokenizer = tokenizer

    @catch_panics()
    def measure(self, examples: Sequence[Example], *, apart: bool = False) -> list[int]:
        """The length of each example with its [CLS] and [SEP]; of choices that of the longest, and so of a pair whose
        texts are read `apart`."""
        texts = [_texts(example, apart) for example in examples]
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


def _texts(example: Example, apart: bool) -> list[tuple[str, ...]]:
    """The texts a model is shown at once; several such for choices."""
    if isinstance(example, Tagged):
        return [(example.lay_out()[0],)]
    if isinstance(example, Question):
        return [(example.question, example.context)]
    if isinstance(example, Choice):
        return [(example.prompt, choice) for choice in example.choices]
    parts = (example.text,) if example.pair is None else (example.text, example.pair)
    return [(part,) for part in parts] if apart else [parts]


def choose_seq_len(lengths: Mapping[int, int], limit: int | None) -> int:
    """How long sequences are to be that nobody has given a length: all but the longest hundredth of the examples are
    taken whole, as far as the model goes. `lengths` says how many examples have each length."""
    left = _SHARE_TAKEN_WHOLE * sum(lengths.values())
    chosen = 0
    for length in sorted(lengths):
        if left <= 0:
            break
        chosen = length
        left -= lengths[length]
    return min(max(USUAL_SEQ_LEN, chosen), limit or _MOST_POSITIONS)


def fit_seq_len(tokenizer: Tokenizer, examples: Sequence[Example], limit: int, *, apart: bool = False) -> int:
    """`choose_seq_len` for these examples."""
    return choose_seq_len(Counter(LengthMeter(tokenizer).measure(examples, apart=apart)), limit)


@dataclass(frozen=True)
class SequenceCost:
    """What a length of sequences means: how many examples are cut, and how many tokens are computed."""

    seq_len: int
    cut: int
    tokens: int


def cost_of(lengths: Mapping[int, int], seq_len: int) -> SequenceCost:
    cut = sum(count for length, count in lengths.items() if length > seq_len)
    return SequenceCost(seq_len, cut, sum(min(length, seq_len) * count for length, count in lengths.items()))


def describe_cut(lengths: Mapping[int, int], seq_len: int, limit: int) -> str | None:
    """What was cut, and what another length would cost; None where everything was taken whole."""
    cost = cost_of(lengths, seq_len)
    if not cost.cut:
        return None
    were = "text was" if sum(lengths.values()) == 1 else "texts were"
    said = f"{cost.cut:,} of {sum(lengths.values()):,} {were} longer than {seq_len:,} tokens and cut"
    longer = cost_of(lengths, min(limit, max(lengths)))
    if longer.seq_len == seq_len:
        return f"{said}; the model takes no more."
    return (
        f"{said}; --seq-len {longer.seq_len} would cut {f'{longer.cut:,}' if longer.cut else 'none'} and compute "
        f"{longer.tokens / cost.tokens:.1f} times as many tokens."
    )
