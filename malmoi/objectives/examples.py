"""Training examples for BERT: masked words in next-sentence pairs, or in packed text.

An example is a pure function of (store, objective, seed, step, position in the global batch). A batch is built by array
operations over all its rows, directly for any step. B sequences, T positions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from malmoi.data.order import find_places, shuffle_epoch
from malmoi.data.randomness import Words, draw_integers, draw_key
from malmoi.data.store import Store
from malmoi.errors import MalmoiError
from malmoi.objectives.masking import Masking, mask_tokens
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.pairs import Pairs, join_pairs, truncate_pairs, walk_documents
from malmoi.values import Batch

_SHIFT, _MASK, _STATIC_MASK = 4, 5, 6  # the purposes of random numbers, see randomness.draw_key

Integers = NDArray[np.int64]


class Segments(Protocol):
    """What fills the sequences of a batch before anything is masked."""

    def count(self, walk: int) -> int:
        """How many examples a walk over the store makes."""

    def lay_out(self, walks: Integers, examples: Integers) -> Layout:
        """The given examples of the given walks."""


@dataclass(frozen=True)
class Layout:
    """Sequences as places in the store: which token stands where, and what is not from the text."""

    places: Integers  # (B, T): place in the store of every token; anything where is_text is False
    is_text: NDArray[np.bool_]  # (B, T)
    specials: Integers  # (B, T): the id that stands where is_text is False
    segment: Integers  # (B, T)
    lengths: Integers  # (B,)
    is_random: NDArray[np.bool_] | None  # (B,)

    def take(self, rows: Integers) -> Layout:
        parts: list[Any] = [getattr(self, field.name) for field in fields(self)]
        chosen: list[Any] = [None if part is None else part[rows] for part in parts]
        return Layout(*chosen)


class Examples:
    """The examples of a store for one objective: `batch(step, batch_size)` builds the batch of any step."""

    def __init__(self, store: Store, options: ExampleOptions) -> None:
        tokenizer = store.tokenizer
        self.store, self.options = store, options
        specials = SpecialIds(
            cls=require_id(store, "[CLS]", tokenizer.cls_id),
            sep=require_id(store, "[SEP]", tokenizer.sep_id),
            pad=require_id(store, "[PAD]", tokenizer.pad_id),
        )
        mask_id = require_id(store, "[MASK]", tokenizer.mask_id)
        self.masking = Masking(options.mask_share, options.count_predictions(), mask_id, store.manifest.vocab_size)
        kind = PairedSegments if options.objective == "mlm+nsp" else PackedSegments
        self._segments: Segments = kind(store, options, specials)

    @cached_property
    def epoch_size(self) -> int:
        """How many examples make an epoch.

        Walks differ by a few examples in their number. The first one's stands for all, so that any step can be found
        without counting the epochs before it; a later epoch leaves out, or shows twice, those few.
        """
        return self._segments.count(0)

    def batch(self, step: int, batch_size: int, positions: Integers | None = None) -> Batch:
        """The batch of a step, or those of its rows that stand at the given positions, as wide as the whole batch."""
        layout, keys = self._lay_out(step, batch_size, np.arange(batch_size))
        if positions is not None:
            layout, keys = layout.take(positions), keys[positions]
        return self._mask(layout, keys)

    def _lay_out(self, step: int, batch_size: int, positions: Integers) -> tuple[Layout, Words]:
        epochs, places = find_places(step, batch_size, self.epoch_size, positions)
        walks = epochs if self.options.duplicates is None else epochs % self.options.duplicates
        examples = np.empty_like(places)
        for epoch in np.unique(epochs):  # a batch may span two
            rows = np.flatnonzero(epochs == epoch)
            size = self._segments.count(int(walks[rows[0]]))
            examples[rows] = shuffle_epoch(self.options.seed, int(epoch), places[rows] % size, size)
        return self._segments.lay_out(walks, examples), self._mask_keys(step, positions, walks, examples)

    def _mask_keys(self, step: int, positions: Integers, walks: Integers, examples: Integers) -> Words:
        if self.options.duplicates is None:
            return draw_key(self.options.seed, _MASK, step, positions)
        return draw_key(self.options.seed, _STATIC_MASK, walks, examples)

    def _mask(self, layout: Layout, keys: Words) -> Batch:
        places = np.where(layout.is_text, layout.places, 0)
        ids = np.where(layout.is_text, self.store.tokens[places].astype(np.int64), layout.specials)
        word_starts = self.store.begins_word(places) if self.options.whole_words else None
        corrupted, labels = mask_tokens(ids, layout.is_text, word_starts, layout.lengths, keys, self.masking)
        width = ids.shape[1]
        padded = bool((layout.lengths < width).any())
        return Batch(
            input_ids=corrupted,
            token_type_ids=layout.segment,
            attention_mask=np.arange(width) < layout.lengths[:, None] if padded else None,
            labels=labels,
            next_sentence_label=None if layout.is_random is None else layout.is_random.astype(np.int64),
        )


@dataclass(frozen=True)
class SpecialIds:
    cls: int
    sep: int
    pad: int


def require_id(store: Store, name: str, id_: int | None) -> int:
    if id_ is None:
        raise MalmoiError(
            f"{store.folder}: its tokenizer has no {name} token, which this objective needs; train one with malmoi "
            "tokenizer train, or extend the tokenizer's special tokens."
        )
    return id_


class PairedSegments:
    """[CLS] A [SEP] B [SEP]: see objectives/pairs.py."""

    def __init__(self, store: Store, options: ExampleOptions, specials: SpecialIds) -> None:
        self._store, self._options, self._specials = store, options, specials
        self._max_tokens = options.seq_len - 3
        # Two: a batch may span two epochs.
        self._walk = lru_cache(maxsize=2)(self._walk_anew)

    def _walk_anew(self, walk: int) -> Pairs:
        options = self._options
        return walk_documents(
            self._store, options.seed, walk, max_tokens=self._max_tokens, short_share=options.short_share
        )

    def count(self, walk: int) -> int:
        return len(self._walk(walk))

    def _find_pairs(self, walks: Integers, examples: Integers) -> Pairs:
        # Row by row of the batch, for it may span two epochs.
        found, order = [], []
        for walk in np.unique(walks):
            rows = np.flatnonzero(walks == walk)
            pairs, places = self._walk(int(walk)), examples[rows]
            found.append(truncate_pairs(pairs.take(places), self._max_tokens, self._options.seed, int(walk), places))
            order.append(rows)
        return join_pairs(found).take(np.argsort(np.concatenate(order)))

    def lay_out(self, walks: Integers, examples: Integers) -> Layout:
        pairs = self._find_pairs(walks, examples)
        a_length = pairs.a_length[:, None].astype(np.int64)  # (B, 1)
        b_length = pairs.b_length[:, None].astype(np.int64)
        lengths = a_length + b_length + 3
        column = np.arange(int(lengths.max()))  # (T,)
        in_a = (column >= 1) & (column <= a_length)
        in_b = (column >= a_length + 2) & (column < lengths - 1)
        specials = np.full(in_a.shape, self._specials.sep)
        specials[:, 0] = self._specials.cls
        specials[column >= lengths] = self._specials.pad
        return Layout(
            places=np.where(in_a, pairs.a_begin[:, None] + column - 1, pairs.b_begin[:, None] + column - a_length - 2),
            is_text=in_a | in_b,
            specials=specials,
            segment=((column >= a_length + 2) & (column < lengths)).astype(np.int64),
            lengths=lengths[:, 0],
            is_random=pairs.is_random,
        )


class PackedSegments:
    """[CLS] text [SEP]: the documents laid end to end in a ring, [SEP] between them, cut into full sequences.

    Each epoch begins to cut at another place, so the cuts fall elsewhere; the piece left over at the end of the ring is
    shorter than a sequence and waits for another epoch.
    """

    def __init__(self, store: Store, options: ExampleOptions, specials: SpecialIds) -> None:
        self._options, self._specials = options, specials
        begins, ends = store.sentences[store.document_begins], store.sentences[store.document_ends]
        # Where, in the ring, the separator behind each document stands, and how far its tokens are from their places.
        self._separators = np.cumsum(ends - begins + 1) - 1
        self._offsets = ends - self._separators
        self._ring = int(self._separators[-1]) + 1
        self._width = min(options.seq_len - 2, self._ring)

    def count(self, walk: int) -> int:
        return self._ring // self._width

    def lay_out(self, walks: Integers, examples: Integers) -> Layout:
        shift = draw_integers(draw_key(self._options.seed, _SHIFT, walks), 0, self._ring)
        column = np.arange(self._width + 2)  # (T,)
        place = ((shift + examples * self._width)[:, None] + column - 1) % self._ring  # (B, T)
        document = np.searchsorted(self._separators, place, side="left")
        specials = np.full(place.shape, self._specials.sep)
        specials[:, 0] = self._specials.cls
        inside = (column >= 1) & (column <= self._width)
        return Layout(
            places=place + self._offsets[document],
            is_text=inside & (place != self._separators[document]),
            specials=specials,
            segment=np.zeros(place.shape, dtype=np.int64),
            lengths=np.full(len(examples), len(column)),
            is_random=None,
        )
