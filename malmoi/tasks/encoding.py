"""Texts and pairs of texts → ids no longer than a model can take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import tokenizers

from malmoi.errors import MalmoiError
from malmoi.text.panics import catch_panics
from malmoi.text.tokenizer import Tokenizer

_LEAST = 8


class TextEncoder:
    """A tokenizer that cuts. Of a pair, the longer text is cut, or with `cut="second"` only the second; with `stride`
    what was cut off is in further windows (`overflowing`), each of which repeats so many tokens of the one before."""

    def __init__(
        self, tokenizer: Tokenizer, seq_len: int, *, cut: Literal["longer", "second"] = "longer", stride: int = 0
    ) -> None:
        if seq_len < _LEAST:
            raise MalmoiError(f"--seq-len {seq_len}: a sequence needs at least {_LEAST} positions.")
        # A backend of its own: the limit is of this use, not of the tokenizer.
        self._backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
        strategy = "longest_first" if cut == "longer" else "only_second"
        self._backend.enable_truncation(seq_len, stride=stride, strategy=strategy)

    @catch_panics()
    def encode(self, texts: Sequence[str | tuple[str, str]]) -> list[tokenizers.Encoding]:
        """Ids alone, which is fast."""
        return list(self._backend.encode_batch_fast(list(texts)))

    @catch_panics()
    def encode_with_offsets(self, texts: Sequence[str | tuple[str, str]]) -> list[tokenizers.Encoding]:
        return list(self._backend.encode_batch(list(texts)))


def pair_up(text: str, pair: str | None) -> str | tuple[str, str]:
    return text if pair is None else (text, pair)
