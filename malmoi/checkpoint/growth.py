"""A model whose tokenizer has learned new pieces: its tables grow, everything else stays.

A new piece begins as the mean of the pieces it was cut into before, so that the model reads text with it much as it did
without it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.bundle import Bundle
from malmoi.checkpoint.fitting import build_model
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer


def grow_vocabulary(bundle: Bundle, tokenizer: Tokenizer) -> int:
    """Give a model the extended tokenizer; returns how many pieces are new."""
    known, grown = bundle.tokenizer.backend.get_vocab(), tokenizer.backend.get_vocab()
    _require_extension(bundle.tokenizer, tokenizer)
    parts = {id_: _cut(bundle.tokenizer, piece) for piece, id_ in grown.items() if piece not in known}
    config = replace(bundle.config, vocab_size=max(bundle.config.vocab_size, tokenizer.vocab_size))
    model = build_model(bundle.system, config, seed=0, head=bundle.head)
    weights = bundle.model.state_dict()
    for name in _find_tables(bundle, config):
        weights[name] = _grow(weights[name], model.state_dict()[name], parts)
    model.load_state_dict(weights)
    bundle.model, bundle.config, bundle.tokenizer = model.eval(), config, tokenizer
    return len(parts)


def _require_extension(old: Tokenizer, new: Tokenizer) -> None:
    grown = new.backend.get_vocab()
    moved = [piece for piece, id_ in old.backend.get_vocab().items() if grown.get(piece) != id_]
    before, after = (json.loads(one.backend.to_str()) for one in (old, new))
    changed = [part for part in ("normalizer", "pre_tokenizer") if before[part] != after[part]]
    if moved or changed or old.kind != new.kind:
        why = (
            f"the piece {moved[0]!r} has another id or is gone"
            if moved
            else f"{' and '.join(changed) or 'kind'} differ"
        )
        raise MalmoiError(
            f"The store was prepared with another tokenizer than the model's, not with an extension of it ({why}); "
            "prepare it with the tokenizer in the model's folder, or with what malmoi tokenizer extend made of that."
        )


def _find_tables(bundle: Bundle, config: Any) -> list[str]:
    """The names of the weights that have a row for each piece: those that change their shape with the vocabulary."""
    with torch.device("meta"):
        one, other = (
            SYSTEMS[bundle.system].build(replace(config, vocab_size=size), bundle.head).state_dict()
            for size in (config.vocab_size, config.vocab_size + 1)
        )
    return [name for name, tensor in one.items() if tensor.shape != other[name].shape]


def _grow(old: Tensor, fresh: Tensor, parts: dict[int, list[int]]) -> Tensor:
    grown = fresh.clone()
    grown[: len(old)] = old
    for id_, pieces in parts.items():
        if pieces:
            grown[id_] = old[torch.tensor(pieces)].mean(dim=0)
        else:
            grown[id_] = fresh[id_]
    return grown


def _cut(tokenizer: Tokenizer, piece: str) -> list[int]:
    """The ids of the known pieces that a new one is made of; none where it has characters nobody knew."""
    prefix = getattr(tokenizer.backend.model, "continuing_subword_prefix", None) or ""
    inside = bool(prefix) and piece.startswith(prefix)
    ids = [token.id for token in tokenizer.backend.model.tokenize(piece.removeprefix(prefix) if inside else piece)]
    if inside and ids:
        # Cut as a word of its own, its first part got the form that begins a word.
        continued = tokenizer.id(prefix + tokenizer.token(ids[0]))
        ids[0] = ids[0] if continued is None else continued
    return [] if tokenizer.unk_id in ids else ids
