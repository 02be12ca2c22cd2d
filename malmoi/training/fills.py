"""What a model fills in: gaps in held-out text, what belongs there, and what the model would put.

N sequences, T positions, V words of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from malmoi.values import IGNORED, Batch

if TYPE_CHECKING:
    from malmoi.checkpoint.bundle import Bundle
    from malmoi.text.tokenizer import Tokenizer

_SHOWN_AROUND = 12
_TOP = 5


@dataclass(frozen=True)
class FilledGap:
    """A gap with a few words around it, the piece that belongs there, and guesses with their probabilities."""

    before: str
    after: str
    truth: str
    guesses: list[tuple[str, float]]


def fill_held_out(bundle: Bundle, batch: Batch, count: int) -> list[FilledGap]:
    """One gap in each of the first sequences that have any; the model sees all the rest of the sequence."""
    model: Any = bundle.model
    tokenizer, device = bundle.tokenizer, next(model.parameters()).device
    original = np.where(batch.labels == IGNORED, batch.input_ids, batch.labels)
    gaps = [_choose_gap(ids, truth, tokenizer) for ids, truth in zip(batch.input_ids, original, strict=True)]
    rows = [row for row, gap in enumerate(gaps) if gap is not None][:count]
    columns = [gap for gap in gaps if gap is not None][:count]
    if not rows:
        return []
    mask = None if batch.attention_mask is None else torch.from_numpy(batch.attention_mask[rows]).to(device)
    ids = original[rows]  # (N, T)
    ids[np.arange(len(rows)), columns] = batch.input_ids[rows, columns]
    with torch.inference_mode():
        hidden = model(
            input_ids=torch.from_numpy(ids).to(device),
            token_type_ids=torch.from_numpy(batch.token_type_ids[rows]).to(device),
            attention_mask=mask,
        ).last_hidden_state  # (N, T, hidden)
        logits = model.word_logits(hidden[torch.arange(len(rows)), torch.tensor(columns)])  # (N, V)
        best = logits[:, : tokenizer.vocab_size].softmax(dim=-1).topk(_TOP)
    return [
        FilledGap(
            before=tokenizer.decode(original[row, max(0, gap - _SHOWN_AROUND) : gap].tolist()),
            after=tokenizer.decode(original[row, gap + 1 : gap + 1 + _SHOWN_AROUND].tolist()),
            truth=tokenizer.token(int(original[row, gap])),
            guesses=[(tokenizer.token(id_), share) for id_, share in zip(pieces, shares, strict=True)],
        )
        for row, gap, pieces, shares in zip(rows, columns, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _choose_gap(ids: NDArray[np.int64], original: NDArray[np.int64], tokenizer: Tokenizer) -> int | None:
    """A masked word if there is one, since a comma says little of a model; of several the one in the middle."""
    gaps: list[int] = np.flatnonzero((ids == tokenizer.mask_id) & (original != tokenizer.mask_id)).tolist()
    words = [gap for gap in gaps if tokenizer.token(int(original[gap])).isalpha()]
    chosen = words or gaps
    return chosen[len(chosen) // 2] if chosen else None
