"""The methods of everything that gives vectors, whatever engine computes them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from malmoi.features.embedder import Embedder, TextStates
from malmoi.features.layers import Layers
from malmoi.features.options import BATCH_TOKENS, BatchOptions, Pieces, Truncation, VectorOptions, WordOptions
from malmoi.features.words import WordVectors
from malmoi.text.given import check_text, take_several, take_texts


class GivesVectors(ABC):
    """Whoever has an embedder has these."""

    @property
    @abstractmethod
    def embedder(self) -> Embedder:
        """What makes vectors of this model as it now is."""

    def embed(
        self,
        texts: str | Iterable[str],
        *,
        layers: Layers = "last",
        pool: str | None = None,
        combine: str | Sequence[float] = "concat",
        normalize: bool | None = None,
        dimensions: int | None = None,
        truncate: Truncation = "error",
        batch_tokens: int = BATCH_TOKENS,
    ) -> NDArray[np.float32]:
        """A vector for each text: float32 (N, D), in the order of the texts; of a single one, its vector (D,). An empty
        text has that of [CLS] [SEP].

        layers: last, second-to-last, last4, all (h_1 to h_L), a number (0 are the embeddings, -1 the last), or a list.
        pool: cls, pooler, mean, max, mean-sqrt-len or weighted-mean; [CLS] and [SEP] count.
        combine: concat (the lowest layer first; D is layers × hidden_size), mean, sum, or a weight for each layer.
        normalize: bring vectors to length one. Where it or the pooling is not given, the folder of a sentence embedder
            decides; other models give the mean, not normalised.
        dimensions: keep so many of the first dimensions; normalised vectors are normalised again.
        truncate: what is done with texts longer than the model: error, right (the beginning counts) or window (parts
            of full length, averaged by their numbers of tokens); a warning says how many there were.
        """
        embedder = self.embedder
        options = VectorOptions(truncate, batch_tokens, layers, _plain(combine), pool, normalize, dimensions)
        given, is_single = take_texts(texts)
        vectors, cut = embedder.embed(given, options)
        _warn(embedder, cut, len(given), truncate)
        return vectors[0] if is_single else vectors

    # A string is a sequence of strings too: that one text gives one answer is not seen in its type.
    @overload
    def words(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        words: Sequence[str] | None = None,
        layers: Layers = "last4",
        combine: str | Sequence[float] = "concat",
        pieces: Pieces = "first",
        truncate: Truncation = "error",
        batch_tokens: int = BATCH_TOKENS,
    ) -> WordVectors: ...
    @overload
    def words(
        self,
        texts: Iterable[str] | Iterable[Sequence[str]],
        *,
        words: Sequence[Sequence[str]] | None = None,
        layers: Layers = "last4",
        combine: str | Sequence[float] = "concat",
        pieces: Pieces = "first",
        truncate: Truncation = "error",
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[WordVectors]: ...
    def words(
        self,
        texts: str | Iterable[str] | Iterable[Sequence[str]],
        *,
        words: Sequence[str] | Sequence[Sequence[str]] | None = None,
        layers: Layers = "last4",
        combine: str | Sequence[float] = "concat",
        pieces: Pieces = "first",
        truncate: Truncation = "error",
        batch_tokens: int = BATCH_TOKENS,
    ) -> WordVectors | list[WordVectors]:
        """For each text its words, where they stand, and a vector for each: float32 (W, D).

        A text is a string, whose words stand between white space or are given by `words`, or a list of words. Of the
        pieces of a word the first, the mean, the last or the max counts; [CLS] and [SEP] belong to no word. With
        truncate="right" the words that do not fit are left out; with "window" all are kept. The rest is as in `embed`.
        """
        embedder = self.embedder
        options = WordOptions(truncate, batch_tokens, layers, _plain(combine), pieces)
        is_single = isinstance(texts, str)
        given = [texts] if is_single else take_several(texts)
        own: Any = words if words is None or not is_single else [words]
        found, cut = embedder.words(
            [_check_words(text, f"text {number}") for number, text in enumerate(given)],
            options,
            None if own is None else [_check_words(one, f"text {number}") for number, one in enumerate(own)],
        )
        _warn(embedder, cut, len(given), truncate)
        return found[0] if is_single else found

    @overload
    def hidden_states(  # type: ignore[overload-overlap]
        self, texts: str, *, attentions: bool = False, batch_tokens: int = BATCH_TOKENS
    ) -> TextStates: ...
    @overload
    def hidden_states(
        self, texts: Iterable[str], *, attentions: bool = False, batch_tokens: int = BATCH_TOKENS
    ) -> list[TextStates]: ...
    def hidden_states(
        self, texts: str | Iterable[str], *, attentions: bool = False, batch_tokens: int = BATCH_TOKENS
    ) -> TextStates | list[TextStates]:
        """For each text its tokens and all layers: hidden_states (L + 1, T, hidden), and attentions (L, H, T, T).

        Nothing is padded and nothing is cut.
        """
        given, is_single = take_texts(texts)
        states = self.embedder.hidden_states(given, BatchOptions(batch_tokens=batch_tokens), attentions)
        return states[0] if is_single else states


def _check_words(text: Any, place: str) -> Any:
    """A text, or a list of its words."""
    if isinstance(text, str):
        return check_text(text, place)
    words = take_several(text, f"{place}: a text or a list of its words is needed")
    return [check_text(word, f"{place}: word {number}") for number, word in enumerate(words)]


def _plain(combine: str | Sequence[float]) -> str | tuple[float, ...]:
    return combine if isinstance(combine, str) else tuple(combine)


def _warn(embedder: Embedder, cut: int, count: int, truncate: Truncation) -> None:
    if cut:
        warnings.warn(embedder.describe_cut(cut, count, truncate), stacklevel=3)
