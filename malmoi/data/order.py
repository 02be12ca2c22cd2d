"""Which example stands at which place of a training run: (seed, step) → examples, without state.

A run reads the examples of an epoch in an order shuffled by seed and epoch, then those of the next. The shuffle is a
Feistel network, which maps each place to its example directly: nothing is stored, and the last step costs what the
first does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from malmoi.data.randomness import Words, draw_key, draw_words
from malmoi.errors import MalmoiError

_ORDER = 1  # the purpose of these random numbers, see randomness.draw_key
_ROUNDS = 8
_MOST_EXAMPLES = 1 << 62  # what the arithmetic of numpy holds


def find_places(
    step: int, batch_size: int, epoch_size: int, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The epoch, and the place in it, of each of the given positions of the global batch of one step."""
    if (step + 1) * batch_size > _MOST_EXAMPLES:
        raise MalmoiError(
            f"--step {step}, --batch-size {batch_size}: no run comes so far; both together name at most 2**62 examples."
        )
    places = step * batch_size + positions
    return places // epoch_size, places % epoch_size


def shuffle_epoch(seed: int, epoch: int, places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The examples that stand at these places of an epoch of `size` examples."""
    return shuffle_places(places, size, draw_key(seed, _ORDER, epoch))


def shuffle_places(places: NDArray[np.int64], size: int, key: Words) -> NDArray[np.int64]:
    """Where each place in [0, size) goes in the shuffle named by the key: a bijection for every key."""
    bits = max(2, (size - 1).bit_length())
    low_bits = np.uint64(bits // 2)
    low_mask = np.uint64((1 << (bits // 2)) - 1)
    high_mask = np.uint64((1 << (bits - bits // 2)) - 1)
    words = places.astype(np.uint64)
    key = np.broadcast_to(key, words.shape)
    outside = np.ones(words.shape, dtype=bool)
    # The network shuffles a power of two; what lands outside is sent through again until it lands inside, which keeps
    # the map a bijection. Less than half of the domain is outside, so few rounds suffice.
    while outside.any():
        high, low, keys = words[outside] >> low_bits, words[outside] & low_mask, key[outside]
        for round_ in range(0, _ROUNDS, 2):
            high ^= draw_words(keys ^ low, round_) & high_mask
            low ^= draw_words(keys ^ high, round_ + 1) & low_mask
        words[outside] = (high << low_bits) | low
        outside = words >= np.uint64(size)
    return words.astype(np.int64)
