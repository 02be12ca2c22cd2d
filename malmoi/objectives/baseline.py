"""What a model that knows nothing but how often words occur would lose: the mark that pre-training has to beat."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from malmoi.data.store import Store
from malmoi.values import IGNORED, Batch


def measure_unigram_loss(store: Store, batches: Iterable[Batch]) -> float:
    """The mean cross-entropy, in nats, of the words to be predicted under the word frequencies of a store."""
    counts = np.ones(store.manifest.vocab_size)  # one more each, so that a word never seen costs something finite
    begins, ends = store.sentences[store.document_begins], store.sentences[store.document_ends]
    # Documents that follow each other are counted at once: all but a few of them do.
    breaks = np.flatnonzero(begins[1:] != ends[:-1])
    for begin, end in zip(begins[np.r_[0, breaks + 1]], ends[np.r_[breaks, -1]], strict=True):
        counts += np.bincount(store.tokens[begin:end], minlength=len(counts))
    surprise = np.log(counts.sum()) - np.log(counts)
    labels = np.concatenate([batch.labels[batch.labels != IGNORED] for batch in batches])
    return float(surprise[labels].mean())
