"""Tokens → one vector. [CLS] and [SEP] count like any other token, as in sentence-transformers.

B sequences, T positions, padded on the right.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from malmoi.errors import MalmoiError

Pooling = Literal["cls", "pooler", "mean", "max", "mean-sqrt-len", "weighted-mean"]
POOLINGS: tuple[str, ...] = get_args(Pooling)


def pool_tokens(hidden: NDArray[np.float32], lengths: NDArray[np.int64], pool: str) -> NDArray[np.float32]:
    """(B, T, hidden) and how many positions of each sequence are tokens → (B, hidden)"""
    if pool == "cls":
        return hidden[:, 0]
    if pool == "max":
        is_token = np.arange(hidden.shape[1]) < lengths[:, None]  # (B, T)
        shown = hidden if is_token.all() else np.where(is_token[..., None], hidden, np.float32(-np.inf))
        largest: NDArray[np.float32] = shown.max(axis=1)
        return largest
    # Not a matrix product: that would wake numpy's own threads, and they would fight torch's for the cores.
    pooled: NDArray[np.float32] = np.einsum("bt,bth->bh", weigh_tokens(lengths, hidden.shape[1], pool), hidden)
    return pooled


def weigh_tokens(lengths: NDArray[np.int64], width: int, pool: str) -> NDArray[np.float32]:
    """How much each of `width` positions counts in a pooling that adds up (B, T)."""
    positions = np.arange(width)
    is_token = positions < lengths[:, None]  # (B, T)
    if pool == "mean":
        weights = is_token / lengths[:, None]
    elif pool == "mean-sqrt-len":
        weights = is_token / np.sqrt(lengths[:, None])
    elif pool == "weighted-mean":
        # The n-th token counts n times.
        weights = is_token * (positions + 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
    else:
        raise MalmoiError(f"--pool {pool}: choose one of {', '.join(POOLINGS)}.")
    return weights.astype(np.float32)


def finish_vectors(vectors: NDArray[np.float32], normalize: bool, dimensions: int | None) -> NDArray[np.float32]:
    """Cut to the first dimensions and bring to length one, where that is wanted."""
    if dimensions is not None:
        if not 1 <= dimensions <= vectors.shape[1]:
            raise MalmoiError(f"--dimensions {dimensions}: the vectors have {vectors.shape[1]}; choose 1 to that.")
        vectors = np.ascontiguousarray(vectors[:, :dimensions])
    if normalize:
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return vectors
