"""Masked language modelling: which tokens are to be predicted, and what stands in their place.

B sequences, T positions, G words of the sequence with most of them. All randomness comes from one key a sequence, so a
mask is a pure function of that key; see data/randomness.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.data.randomness import Words, draw_integers, draw_key, draw_uniform
from malmoi.values import IGNORED

# The purposes random numbers are drawn for.
_CHOICE, _REPLACEMENT, _RANDOM_TOKEN = 0, 1, 2

_MASKED_SHARE = 0.8
_RANDOM_SHARE = 0.1  # the remaining tenth is left as it is


@dataclass(frozen=True)
class Masking:
    """How tokens are chosen: `share` of the sequence's length, at least one and at most `max_predictions`."""

    share: float
    max_predictions: int
    mask_id: int
    vocab_size: int

    def count(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens are to be predicted in sequences of these lengths, specials included."""
        counts: NDArray[np.int64] = np.rint(lengths * self.share).astype(np.int64).clip(1, self.max_predictions)
        return counts


def mask_tokens(
    input_ids: NDArray[np.int64],  # (B, T)
    maskable: NDArray[np.bool_],  # (B, T): real text, not specials or padding
    word_starts: NDArray[np.bool_] | None,  # (B, T): choose whole words; None: choose single tokens
    lengths: NDArray[np.int64],  # (B,): tokens of each sequence, specials included
    keys: Words,  # (B,)
    masking: Masking,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The corrupted ids and the labels: the original token where one is to be predicted, IGNORED elsewhere.

    Of the chosen positions, each by itself, 80% become [MASK], 10% a token drawn from the whole vocabulary, 10% stay.
    """
    budgets = masking.count(lengths)  # (B,)
    words = _number_words(maskable, word_starts)
    if word_starts is not None:
        words = _take_apart(words, budgets)
    chosen = choose_words(words, budgets, draw_key(0, keys, _CHOICE))  # (B, T)
    labels = np.where(chosen, input_ids, IGNORED)

    row, column = np.nonzero(chosen)  # (M,) each
    fate = draw_uniform(draw_key(0, keys, _REPLACEMENT)[row], column)
    random_ids = draw_integers(draw_key(0, keys, _RANDOM_TOKEN)[row], column, masking.vocab_size)
    corrupted = input_ids.copy()
    to_random = fate >= 1 - _RANDOM_SHARE
    corrupted[row[to_random], column[to_random]] = random_ids[to_random]
    to_mask = fate < _MASKED_SHARE
    corrupted[row[to_mask], column[to_mask]] = masking.mask_id
    return corrupted, labels


def _number_words(maskable: NDArray[np.bool_], word_starts: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """The number of the word each position belongs to, -1 where nothing may be masked. (B, T)

    The first maskable position after one that is not always begins a word: a segment may open in the middle of one.
    """
    starts = maskable.copy()
    if word_starts is not None:
        starts[:, 1:] &= word_starts[:, 1:] | ~maskable[:, :-1]
    return np.where(maskable, np.cumsum(starts, axis=1) - 1, -1)


def _take_apart(words: NDArray[np.int64], budgets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same numbers, but where the words that fit cannot fill the budget, each piece of a larger one is a word.

    Text without spaces has such words: a whole clause of Thai may be one. The published builder passes them over, and
    predicts little or nothing there.
    """
    rows, most = words.shape[0], int(words.max(initial=-1)) + 1
    row, column = np.nonzero(words >= 0)
    number = row * most + words[row, column]
    sizes = np.zeros(words.shape, dtype=np.int64)  # of the word that each position belongs to
    sizes[row, column] = np.bincount(number, minlength=rows * most)[number]
    too_large = sizes > budgets[:, None]
    starved = too_large.any(axis=1) & (np.count_nonzero((sizes > 0) & ~too_large, axis=1) < budgets)
    if not starved.any():
        return words
    starts = words >= 0
    starts[:, 1:] &= (words[:, 1:] != words[:, :-1]) | too_large[:, 1:]
    return np.where(starved[:, None] & (words >= 0), np.cumsum(starts, axis=1) - 1, words)


def choose_words(words: NDArray[np.int64], budgets: NDArray[np.int64], keys: Words) -> NDArray[np.bool_]:
    """Choose words in random order, each that still fits into the sequence's budget of tokens. (B, T)

    This is the published greedy choice: a word that would overflow the budget is passed over and smaller ones behind it
    may still be taken.
    """
    rows = words.shape[0]
    most = int(words.max(initial=-1)) + 1
    if most == 0:
        return np.zeros(words.shape, dtype=bool)
    row, column = np.nonzero(words >= 0)
    sizes = np.bincount(row * most + words[row, column], minlength=rows * most).reshape(rows, most)  # (B, G)
    priority = draw_uniform(keys[:, None], np.arange(most))
    order = np.argsort(np.where(sizes > 0, priority, np.inf), axis=1)  # (B, G)
    sizes = np.take_along_axis(sizes, order, axis=1)
    # Sizes only add up, so what fits without passing over any word is a prefix.
    reached = np.cumsum(sizes, axis=1)
    taken = (reached <= budgets[:, None]) & (sizes > 0)
    left = budgets - np.where(taken, sizes, 0).sum(axis=1)
    cursor = taken.sum(axis=1)
    while True:
        fits = (np.arange(most) >= cursor[:, None]) & (sizes > 0) & (sizes <= left[:, None])
        found = np.flatnonzero(fits.any(axis=1))
        if not len(found):
            break
        first = fits[found].argmax(axis=1)
        taken[found, first] = True
        left[found] -= sizes[found, first]
        cursor[found] = first + 1
    chosen = np.zeros((rows, most + 1), dtype=bool)  # one more, for the -1 of what may not be masked
    np.put_along_axis(chosen[:, :most], order, taken, axis=1)
    return np.take_along_axis(chosen, words, axis=1)
