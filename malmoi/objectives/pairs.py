"""Next-sentence pairs: the published walk over the documents, as arrays.

BERT's builder walks each document sentence by sentence: it fills a chunk up to a target length, cuts it in two at a
random sentence, keeps the second half or (half of the time) takes one from another document and puts its own back, and
goes on. Where one walk is a loop, all documents are walked in step here: round k makes the k-th pair of every document
that still has one. Chunk ends are found by bisection in the sentence offsets, so a round is a few array operations.
Where only a few documents are left, long ones, a round would cost more than the loop, and each is walked by itself.

The walk is redrawn for every epoch and is a pure function of (store, seed, walk number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from malmoi.data.randomness import Words, draw_heads, draw_integers, draw_key, draw_uniform
from malmoi.data.store import Store

_WALK, _TRUNCATION = 2, 3  # the purposes of random numbers, see randomness.draw_key

# What is drawn for a pair: its counter. The tries for another document follow after.
_CUT, _IS_RANDOM, _START, _TRIES = 0, 1, 2, 3
_MOST_TRIES = 10

# Documents walked in step at a time: bounds the memory of the arrays in between.
_DOCUMENTS_AT_ONCE = 1 << 17
# So few documents are no longer walked in step; and the sentences of one of them that are prepared at a time.
_FEW_DOCUMENTS = 64
_SENTENCES_AT_ONCE = 1 << 16

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """P pairs of segments, each a run of tokens in the store."""

    a_begin: Integers  # (P,)
    a_length: NDArray[np.int32]
    b_begin: Integers
    b_length: NDArray[np.int32]
    is_random: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.a_begin)

    def take(self, places: Integers) -> Pairs:
        return Pairs(*(getattr(self, field.name)[places] for field in fields(self)))


def walk_documents(store: Store, seed: int, walk: int, *, max_tokens: int, short_share: float) -> Pairs:
    """All pairs of one walk over the store, before truncation. `max_tokens` is what both segments may hold together."""
    parts = [
        part
        for begin in range(0, len(store.document_begins), _DOCUMENTS_AT_ONCE)
        for part in _walk_in_step(store, seed, walk, begin, max_tokens, short_share)
    ]
    return join_pairs(parts)


def join_pairs(parts: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Pairs)))


def _walk_in_step(
    store: Store, seed: int, walk: int, first_document: int, max_tokens: int, short_share: float
) -> list[Pairs]:
    offsets = store.sentences
    document: Integers = np.arange(first_document, min(first_document + _DOCUMENTS_AT_ONCE, len(store.document_begins)))
    key = draw_key(seed, _WALK, walk, document)
    # The target is drawn once a document: mostly full, at times short, to look like what fine-tuning will show.
    is_short = draw_uniform(key, 0) < short_share
    target = np.where(is_short, 2 + draw_integers(key, 1, max_tokens - 1), max_tokens)
    cursor, end = store.document_begins[document], store.document_ends[document]
    parts = []
    round_ = 0
    while len(document) > _FEW_DOCUMENTS:
        draws = draw_key(0, key, round_)
        chunk_end = _fill(offsets, cursor, end, target)
        count = chunk_end - cursor
        cut = cursor + np.where(count > 1, 1 + draw_integers(draws, _CUT, count - 1), 1)
        is_random = (count == 1) | (draw_uniform(draws, _IS_RANDOM) < 0.5)
        chunks = _Chunks(cursor, cut, chunk_end, is_random)
        parts.append(_make_pairs(store, draws, document, target, chunks))
        cursor = chunks.next_cursor
        going_on = cursor < end
        document, key, target = document[going_on], key[going_on], target[going_on]
        cursor, end = cursor[going_on], end[going_on]
        round_ += 1
    rounds, alone = [], []
    for row, number in enumerate(document.tolist()):
        walked = _walk_alone(offsets, key[row : row + 1], round_, int(cursor[row]), int(end[row]), target[row])
        for draws, first_round, chunks in walked:
            alone.append(_make_pairs(store, draws, np.array(number), target[row], chunks))
            rounds.append(first_round + np.arange(len(draws)))
    if alone:
        # The same order as in step: round by round.
        parts.append(join_pairs(alone).take(np.argsort(np.concatenate(rounds), kind="stable")))
    return parts


@dataclass(frozen=True)
class _Chunks:
    """Chunks of sentences, each with the one that its second half begins with."""

    begin: Integers
    cut: Integers
    end: Integers
    is_random: NDArray[np.bool_]

    @property
    def next_cursor(self) -> Integers:
        """The second half of a chunk that a random segment took the place of is put back."""
        return np.where(self.is_random, self.cut, self.end)


def _walk_alone(
    offsets: Integers, key: Words, round_: int, cursor: int, end: int, target: np.int64
) -> Iterator[tuple[Words, int, _Chunks]]:
    """The chunks of the rest of one document from a round on: in blocks, with their draws and the first one's round."""
    while cursor < end:
        first = cursor
        stop = min(first + _SENTENCES_AT_ONCE, end)
        # What a chunk would be from any sentence, and what any round draws; only the way through them is a loop.
        chunk_ends = _fill(offsets, np.arange(first, stop), end, target).tolist()
        draws = draw_key(0, key, np.arange(round_, round_ + stop - first))
        coins = (draw_uniform(draws, _IS_RANDOM) < 0.5).tolist()
        chunks = []
        for share, coin in zip(draw_uniform(draws, _CUT).tolist(), coins, strict=True):
            chunk_end = chunk_ends[cursor - first]
            count = chunk_end - cursor
            cut = cursor + (1 + int(share * (count - 1)) if count > 1 else 1)  # as draw_integers does
            is_random = count == 1 or coin
            chunks.append((cursor, cut, chunk_end, is_random))
            cursor = cut if is_random else chunk_end
            if cursor >= stop:
                break
        begins, cuts, ends, randoms = (np.array(column) for column in zip(*chunks, strict=True))
        yield draws[: len(chunks)], round_, _Chunks(begins, cuts, ends, randoms)
        round_ += len(chunks)


def _make_pairs(store: Store, draws: Words, document: Integers, target: Integers | np.int64, chunks: _Chunks) -> Pairs:
    """A pair of each chunk: A its first half; B the second, or as much from another document as fills the target."""
    offsets = store.sentences
    a_begin, a_end = offsets[chunks.begin], offsets[chunks.cut]
    other = _draw_other_document(draws, document, len(store.document_begins))
    other_begin, other_end = store.document_begins[other], store.document_ends[other]
    start = other_begin + draw_integers(draws, _START, other_end - other_begin)
    stop = _fill(offsets, start, other_end, target - (a_end - a_begin))
    b_begin = np.where(chunks.is_random, offsets[start], a_end)
    b_end = np.where(chunks.is_random, offsets[stop], offsets[chunks.end])
    a_length, b_length = (a_end - a_begin).astype(np.int32), (b_end - b_begin).astype(np.int32)
    return Pairs(a_begin, a_length, b_begin, b_length, chunks.is_random)


def _fill(offsets: Integers, begin: Integers, end: Integers | int, target: Integers | np.int64) -> Integers:
    """One past the last sentence of a chunk: sentences are added until it has `target` tokens or `end` comes."""
    reached = np.searchsorted(offsets, offsets[begin] + target, side="left")
    return np.minimum(np.maximum(reached, begin + 1), end)


def _draw_other_document(draws: Words, document: Integers, documents: int) -> Integers:
    """A random document, another than the given one if ten tries find it."""
    other = draw_integers(draws, _TRIES, documents)
    for attempt in range(1, _MOST_TRIES):
        same = np.flatnonzero(other == document)
        if not len(same):
            break
        other[same] = draw_integers(draws[same], _TRIES + attempt, documents)
    return other


def truncate_pairs(pairs: Pairs, max_tokens: int, seed: int, walk: int, places: Integers) -> Pairs:
    """Cut pairs to `max_tokens`: token by token off the longer segment (B where equal), front or back by a coin.

    Which segment loses how many follows from the lengths alone; how many of those come off the front is as many heads
    as so many coins show. `places` are the pairs' places in the walk, which the coins depend on.
    """
    a_length, b_length = pairs.a_length.astype(np.int64), pairs.b_length.astype(np.int64)
    excess = np.maximum(a_length + b_length - max_tokens, 0)
    difference = a_length - b_length
    levelling = np.minimum(excess, np.abs(difference))  # first the longer one comes down to the other,
    alternating = excess - levelling  # then they take turns, B first
    a_cut = np.where(difference > 0, levelling, 0) + alternating // 2
    b_cut = np.where(difference > 0, 0, levelling) + alternating - alternating // 2
    key = draw_key(seed, _TRUNCATION, walk, places)
    return Pairs(
        a_begin=pairs.a_begin + draw_heads(draw_key(0, key, 0), a_cut),
        a_length=(a_length - a_cut).astype(np.int32),
        b_begin=pairs.b_begin + draw_heads(draw_key(0, key, 1), b_cut),
        b_length=(b_length - b_cut).astype(np.int32),
        is_random=pairs.is_random,
    )
