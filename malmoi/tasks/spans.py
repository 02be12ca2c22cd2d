"""Where an answer begins and ends, from what a model says of each token of each window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.tasks.predictions import FoundSpan, Reply

_CANDIDATES = 5


@dataclass(frozen=True)
class Window:
    """A window of a context: the logits of its tokens, and the characters each stands for (-1: not of the context)."""

    logits: NDArray[np.float32]  # (T, 2)
    places: NDArray[np.int32]  # (T, 2)


def find_answer(context: str, windows: Iterable[Window], longest: int, threshold: float | None) -> Reply:
    """The best span over all windows, or none where that scores better by more than the threshold; with the threshold
    None there always is an answer, unless the context has no token at all."""
    scored: dict[tuple[int, int], float] = {}
    nothing = np.inf
    for window in windows:
        # Nothing is answered only if no window has an answer: the least sure one decides.
        nothing = min(nothing, float(window.logits[0].sum()))
        for span, score in _score_spans(window, longest):
            scored[span] = max(score, scored.get(span, -np.inf))
    best = sorted(scored.items(), key=lambda one: -one[1])[:_CANDIDATES]
    if not best:
        return Reply(None, (), 1.0)
    logits = np.array([score for _, score in best] + ([] if threshold is None else [nothing]))
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    found = tuple(
        FoundSpan(context[start:end], start, end, float(share))
        for ((start, end), _), share in zip(best, shares, strict=False)
    )
    no_answer = 0.0 if threshold is None else float(shares[-1])
    margin = nothing - best[0][1]
    is_none = threshold is not None and margin > threshold
    return Reply(None if is_none else found[0], found, no_answer, margin)


def _score_spans(window: Window, longest: int) -> Iterator[tuple[tuple[int, int], float]]:
    """The best spans of characters in a window, the best first, among all of at most so many tokens."""
    inside = window.places[:, 0] >= 0
    count = len(inside)
    starts = np.where(inside, window.logits[:, 0], -np.inf)
    ends = np.where(inside, window.logits[:, 1], -np.inf)
    last = np.arange(count)[:, None] + np.arange(min(longest, count))  # (T, longest)
    scores = starts[:, None] + np.where(last < count, ends[np.minimum(last, count - 1)], -np.inf)
    found: set[tuple[int, int]] = set()
    for place in np.argsort(-scores, axis=None, kind="stable"):
        first, length = divmod(int(place), scores.shape[1])
        score = float(scores[first, length])
        if score == -np.inf or len(found) == _CANDIDATES:
            return
        # Several tokens may stand for the same characters.
        span = int(window.places[first, 0]), int(window.places[first + length, 1])
        if span not in found:
            found.add(span)
            yield span, score


def shrink_answer(places: NDArray[np.int32], start: int, end: int) -> tuple[int, int] | None:
    """The part of the characters from start to end that tokens stand for: without a space or a U+200B at its ends. None
    where nothing remains. `places` are those of all windows."""
    touched = places[(places[:, 0] >= 0) & (places[:, 0] < end) & (places[:, 1] > start)]
    if not len(touched):
        return None
    return max(start, int(touched[:, 0].min())), min(end, int(touched[:, 1].max()))


def mark_answer(places: NDArray[np.int32], start: int, end: int) -> tuple[int, int]:
    """The first and the last token of the characters from start to end; (0, 0) where the window does not hold them."""
    inside = np.flatnonzero(places[:, 0] >= 0)
    first = [place for place in inside if places[place, 0] <= start < places[place, 1]]
    last = [place for place in inside if places[place, 0] < end <= places[place, 1]]
    return (int(first[0]), int(last[-1])) if first and last else (0, 0)
