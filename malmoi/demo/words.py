"""A word in two contexts: what the trained model of the demo takes to be near it here and there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from malmoi.checkpoint.bundle import Bundle
from malmoi.data.store import Store

_SEQUENCES, _LENGTH, _NEAREST, _AROUND = 240, 48, 5, 6
_LEAST_OCCURRENCES, _SHORTEST = 12, 4


@dataclass(frozen=True)
class WordInContext:
    """An occurrence of a word, and the words whose occurrences are nearest to it."""

    word: str
    context: str
    nearest: list[str]


def compare_contexts(bundle: Bundle, store: Store) -> list[WordInContext]:
    """The word of the text whose two most different occurrences differ most, with the neighbours of each."""
    ids, vectors = _read_occurrences(bundle, store)
    tokenizer = bundle.tokenizer
    flat = ids.reshape(-1)
    candidates, counts = np.unique(flat, return_counts=True)
    best: tuple[float, int, int] | None = None
    for candidate, count in zip(candidates, counts, strict=True):
        word = tokenizer.token(int(candidate))
        if count < _LEAST_OCCURRENCES or len(word) < _shortest(word) or not word.isalpha():
            continue
        places = np.flatnonzero(flat == candidate)
        likeness = vectors[places] @ vectors[places].T
        first, second = np.unravel_index(likeness.argmin(), likeness.shape)
        # Occurrences differ most where the model tells most contexts apart, not in a single odd one.
        if best is None or likeness.mean() < best[0]:
            best = float(likeness.mean()), int(places[first]), int(places[second])
    if best is None:
        return []
    return [_describe(place, ids, vectors, bundle) for place in best[1:]]


def _shortest(word: str) -> int:
    return _SHORTEST if word.isascii() else 2  # a Korean word of two syllables says as much


def _read_occurrences(bundle: Bundle, store: Store) -> tuple[np.ndarray, np.ndarray]:
    """Evenly spaced stretches of the store, and the unit vector of every token in its context."""
    length = min(_LENGTH, store.manifest.tokens)
    begins = np.linspace(0, store.manifest.tokens - length, _SEQUENCES).astype(np.int64)
    ids = store.tokens[begins[:, None] + np.arange(length)].astype(np.int64)
    with torch.inference_mode():
        hidden = bundle.model(input_ids=torch.from_numpy(ids)).last_hidden_state
    vectors = hidden.flatten(0, 1).numpy()
    # Without their common part: in small models it is most of every vector.
    vectors = vectors - vectors.mean(axis=0)
    return ids, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _describe(place: int, ids: np.ndarray, vectors: np.ndarray, bundle: Bundle) -> WordInContext:
    tokenizer = bundle.tokenizer
    row, column = divmod(place, ids.shape[1])
    around = ids[row, max(0, column - _AROUND) : column + _AROUND + 1]
    nearest: list[str] = []
    for other in (vectors @ vectors[place]).argsort()[::-1]:
        token = tokenizer.token(int(ids.reshape(-1)[other]))
        if ids.reshape(-1)[other] != ids[row, column] and token.isalpha() and token not in nearest:
            nearest.append(token)
        if len(nearest) == _NEAREST:
            break
    return WordInContext(tokenizer.token(int(ids[row, column])), tokenizer.decode(around.tolist()), nearest)
