"""Which documents a run learns from, and which it is measured on."""

from __future__ import annotations

import numpy as np

from malmoi.data.randomness import draw_key, draw_uniform
from malmoi.data.store import Store
from malmoi.errors import MalmoiError

_HELD_OUT = 8  # the purpose of these random numbers, see randomness.draw_key


def require_share(share: float) -> None:
    if not 0 <= share < 1:
        raise MalmoiError(f"--eval-share {share}: give a share from 0 to 1, such as 0.02.")


def split_store(store: Store, share: float, seed: int) -> tuple[Store, Store | None]:
    """The documents to train on and those held out, drawn at random; None where there are too few to spare."""
    documents = len(store.document_begins)
    held_out = draw_uniform(draw_key(seed, _HELD_OUT, np.arange(documents)), 0) < share
    if documents < 2 / max(share, 1e-9) or held_out.sum() < 2:
        return store, None
    if held_out.all():
        raise MalmoiError(f"--eval-share {share} holds out all {documents:,} documents; give a smaller share.")
    return store.select(~held_out), store.select(held_out)
