"""Random numbers as a pure function of what they are for.

A number is drawn by naming it: a key folded from (seed, purpose, epoch, document, …) and a counter. There is no state
to save, to hand to a worker or to advance, so any number of any step can be had at once, and whole arrays of them cost
a few array operations. The mixing function is the finaliser of SplitMix64; fixed here, it gives the same numbers on
every machine and with every version of numpy.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def draw_key(seed: int, *parts: int | NDArray[np.integer]) -> Words:
    """Fold a seed and any number of integers (or arrays of them, broadcast together) into keys."""
    key = _mix(_words(seed))
    for part in parts:
        key = _mix(key ^ _mix(_words(part) + _GOLDEN))
    return key


def draw_words(key: Words, counter: int | NDArray[np.integer]) -> Words:
    """64 random bits for each pair of key and counter, broadcast together."""
    return _mix(key + (_words(counter) + np.uint64(1)) * _GOLDEN)


def draw_uniform(key: Words, counter: int | NDArray[np.integer]) -> NDArray[np.float64]:
    """A number in [0, 1) for each pair of key and counter."""
    return (draw_words(key, counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_integers(
    key: Words, counter: int | NDArray[np.integer], count: int | NDArray[np.integer]
) -> NDArray[np.int64]:
    """An integer in [0, count) for each pair of key and counter; count stays far below 2**53."""
    return (draw_uniform(key, counter) * count).astype(np.int64)


def draw_heads(key: Words, flips: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of so many fair coins show heads. key, flips: (B,)"""
    words = -(-int(flips.max(initial=0)) // 64)
    bits = draw_words(key[:, None], np.arange(words))  # (B, words)
    # Keep only as many bits as there are flips: whole words first, then the rest of one.
    kept = np.clip(flips[:, None] - np.arange(words) * 64, 0, 64).astype(np.uint64)
    dropped = np.uint64(64) - kept
    bits = np.where(kept == 0, np.uint64(0), bits >> np.minimum(dropped, np.uint64(63)))
    heads: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return heads


def _words(number: int | NDArray[np.integer]) -> Words:
    # At least one dimension: numpy wraps arrays around silently, as wanted here, but warns for scalars.
    return np.atleast_1d(np.asarray(number)).astype(np.uint64)


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
