"""Texts and pairs of texts → ids no longer than a model can take."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

import tokenizers

from malmoi.errors import MalmoiError
from malmoi.text.given import Text
from malmoi.text.panics import catch_panics
from malmoi.text.tokenizer import Tokenizer

_LEAST = 8
_Strategy = Literal["longest_first", "only_second"]


class TextEncoder:
    """A tokenizer that cuts. Of a pair, the longer text is cut, or with `cut="second"` only the second; with `stride`
    what was cut off is in further windows (`overflowing`), each of which repeats so many tokens of the one before.

    `lengths` are those that the texts of the last `encode` have as a whole.
    """

    def __init__(
        self, tokenizer: Tokenizer, seq_len: int, *, cut: Literal["longer", "second"] = "longer", stride: int = 0
    ) -> None:
        if seq_len < _LEAST:
            raise MalmoiError(f"--seq-len {seq_len}: a sequence needs at least {_LEAST} positions.")
        self._tokenizer, self._seq_len, self._stride = tokenizer, seq_len, stride
        self._strategy: _Strategy = "longest_first" if cut == "longer" else "only_second"
        self.lengths: list[int] = []

    @catch_panics()
    def encode(self, texts: Sequence[Text]) -> list[tokenizers.Encoding]:
        """Ids alone, which is fast. Most texts are not too long: only those that are go through the tokenizer again."""
        encodings = list(self._tokenizer.backend.encode_batch_fast(list(texts)))
        self.lengths = [len(one) for one in encodings]
        long = [number for number, length in enumerate(self.lengths) if length > self._seq_len]
        if long:
            cut = self._cut([texts[number] for number in long], offsets=False)
            for number, encoding in zip(long, cut, strict=True):
                encodings[number] = encoding
        return encodings

    @catch_panics()
    def encode_with_offsets(self, texts: Sequence[Text]) -> list[tokenizers.Encoding]:
        return self._cut(texts, offsets=True)

    def _cut(self, texts: Sequence[Text], *, offsets: bool) -> list[tokenizers.Encoding]:
        cutter = _CUTTERS.get(self._tokenizer)
        if cutter is None or cutter.made_from is not self._tokenizer.backend:
            cutter = _CUTTERS[self._tokenizer] = _Cutter(self._tokenizer.backend)
        return cutter.encode(texts, self._seq_len, self._stride, self._strategy, offsets=offsets)


class _Cutter:
    """A backend of its own, which may cut: a tokenizer's own is used by others, who want texts whole. Parsing a
    vocabulary takes longer than a short text takes a model, so it is kept."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self.made_from = backend
        self._backend = tokenizers.Tokenizer.from_str(backend.to_str())
        self._lock = Lock()

    def encode(
        self, texts: Sequence[Text], seq_len: int, stride: int, strategy: _Strategy, *, offsets: bool
    ) -> list[tokenizers.Encoding]:
        with self._lock:  # another thread may want another length
            self._backend.enable_truncation(seq_len, stride=stride, strategy=strategy)
            encode = self._backend.encode_batch if offsets else self._backend.encode_batch_fast
            return list(encode(list(texts)))


_CUTTERS: WeakKeyDictionary[Tokenizer, _Cutter] = WeakKeyDictionary()


def pair_up(text: str, pair: str | None) -> Text:
    return text if pair is None else (text, pair)
