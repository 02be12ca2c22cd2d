"""Fills the gaps of a text: what a model with a head for hidden words would put in the place of each [MASK].

M gaps, T positions, V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from malmoi.checkpoint.bundle import Bundle
from malmoi.errors import MalmoiError
from malmoi.text.given import check_text
from malmoi.text.tokenizer import Tokenizer
from malmoi.values import Encoded


@dataclass(frozen=True, slots=True)
class Fill:
    """A piece for a gap, how probable it is, and the text with it in place; other gaps stay as they are."""

    token: str
    id: int
    probability: float
    text: str


def fill_gaps(bundle: Bundle, text: str, top: int) -> list[list[Fill]]:
    """For each gap of the text, in order, the `top` most probable pieces, the best first."""
    model: Any = bundle.model
    tokenizer = bundle.tokenizer
    if "word_head" in bundle.absent or getattr(model, "word_head", None) is None:
        raise MalmoiError(
            "The files of this model hold no head for hidden words, so it cannot fill gaps; "
            "use one that was saved with it, or pre-train it."
        )
    if not isinstance(top, int) or top < 1:
        raise MalmoiError(f"--top {top}: a whole number from 1 on is needed.")
    check_text(text, "the text")
    if tokenizer.mask_id is None:
        raise MalmoiError("The tokenizer of this model has no mask token, so there is no gap to fill.")
    encoded = tokenizer.encode(text)
    gaps = [place for place, id in enumerate(encoded.ids) if id == tokenizer.mask_id]
    if not gaps:
        mask = tokenizer.token(tokenizer.mask_id)
        raise MalmoiError(f"The text has no gap to fill; write {mask} where a word is to be found.")
    device = next(model.parameters()).device
    with torch.inference_mode():
        hidden = model(
            input_ids=torch.tensor([encoded.ids], device=device),
            token_type_ids=torch.tensor([encoded.token_type_ids], device=device),
        ).last_hidden_state  # (1, T, hidden)
        probabilities = model.word_logits(hidden[0, gaps]).softmax(dim=-1).cpu()  # (M, V)
    return [
        list(_best(row, tokenizer, text, encoded, place, top)) for row, place in zip(probabilities, gaps, strict=True)
    ]


def _best(row: torch.Tensor, tokenizer: Tokenizer, text: str, encoded: Encoded, place: int, top: int) -> Iterator[Fill]:
    left = top
    for id in row.argsort(descending=True).tolist():
        token = tokenizer.backend.id_to_token(id)
        if token is None:
            continue  # a model's vocabulary may be padded beyond its tokenizer's
        yield Fill(token, id, float(row[id]), _put(tokenizer, token, id, text, encoded.offsets[place]))
        left -= 1
        if not left:
            return


def _put(tokenizer: Tokenizer, token: str, id: int, text: str, gap: tuple[int, int]) -> str:
    before, after = text[: gap[0]], text[gap[1] :]
    prefix = getattr(tokenizer.backend.model, "continuing_subword_prefix", None)
    if prefix and token.startswith(prefix):
        return before.rstrip() + token.removeprefix(prefix) + after
    piece = tokenizer.decode([id], skip_specials=False)
    # Pieces of some kinds bring the space before them along; the text has its own.
    return before + (piece.lstrip() if not before or before[-1].isspace() else piece) + after
