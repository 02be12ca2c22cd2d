"""How well a tokenizer fits a text: tokens a word, what it does not know, how much of Hangul it holds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from malmoi.text.tokenizer import Tokenizer

SAMPLE_BYTES = 2_000_000
_BATCH = 1000
_LONGEST = 10
_SYLLABLES = [chr(code) for code in range(ord("가"), ord("힣") + 1)]
_HANGUL = re.compile("[가-힣]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TokenizerReport:
    """Figures of a tokenizer on a sample of text. Words are what white space separates; shares go from 0 to 1, and
    `hangul_coverage` is None where the text has no Hangul."""

    kind: str
    vocab_size: int
    special_tokens: dict[int, str]
    sample_bytes: int
    sample_is_whole_text: bool
    words: int
    tokens: int
    tokens_per_word: float
    characters_per_token: float
    single_piece_word_share: float
    unknown_token_share: float
    unknown_word_share: float
    hangul_syllables: int
    hangul_coverage: float | None
    hangul_pieces: int
    ksx1001_pieces: int
    longest_pieces: list[str]

    def lines(self) -> list[str]:
        """The report for people."""
        specials = ", ".join(f"{token} {id}" for id, token in list(self.special_tokens.items())[:_LONGEST])
        sample = "" if self.sample_is_whole_text else f" (the first {self.sample_bytes / 1e6:.1f} MB of the text)"
        lines = [
            f"{self.kind}, {self.vocab_size:,} pieces; special: {specials}",
            f"{self.words:,} words, {self.tokens:,} tokens{sample}",
            f"tokens a word        {self.tokens_per_word:.3f}",
            f"characters a token   {self.characters_per_token:.3f}",
            f"words in one piece   {self.single_piece_word_share:.1%}",
            f"unknown              {self.unknown_token_share:.3%} of tokens, {self.unknown_word_share:.3%} of words",
        ]
        if self.hangul_coverage is not None:
            lines.append(f"Hangul known         {self.hangul_coverage:.3%} of {self.hangul_syllables:,} syllables")
        lines.append(
            f"Hangul pieces        {self.hangul_pieces:,} of 11,172 syllables, {self.ksx1001_pieces:,} of "
            "KS X 1001's 2,350"
        )
        lines.append(f"longest pieces       {' '.join(self.longest_pieces)}")
        return lines


def report_tokenizer(tokenizer: Tokenizer, texts: Iterable[str]) -> TokenizerReport:
    """Encode the first two megabytes of the text and count."""
    sample = _Sample(texts)
    words = tokens = characters = unknown_tokens = unknown_words = single_words = syllables = unknown_syllables = 0
    for batch in sample.batches():
        for text, encoded in zip(batch, tokenizer.encode_batch(batch, specials=False), strict=True):
            spans = [match.span() for match in _WORD.finditer(text)]
            pieces_of_word = [0] * len(spans)
            unknown_in_word = [False] * len(spans)
            here = 0
            for id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
                unknown = id == tokenizer.unk_id
                if unknown:
                    unknown_tokens += 1
                    unknown_syllables += len(_HANGUL.findall(text, start, end))
                start += len(text[start:end]) - len(text[start:end].lstrip())
                while here < len(spans) and spans[here][1] <= start:
                    here += 1
                # A piece of white space alone belongs to no word.
                if here < len(spans) and start < end:
                    pieces_of_word[here] += 1
                    unknown_in_word[here] |= unknown
            words += len(spans)
            tokens += len(encoded.ids)
            characters += sum(end - start for start, end in spans)
            single_words += sum(
                count == 1 and not unknown for count, unknown in zip(pieces_of_word, unknown_in_word, strict=True)
            )
            unknown_words += sum(unknown_in_word)
            syllables += len(_HANGUL.findall(text))
    pieces = _syllable_pieces(tokenizer)
    return TokenizerReport(
        kind=tokenizer.kind,
        vocab_size=tokenizer.vocab_size,
        special_tokens={id: tokenizer.token(id) for id in sorted(tokenizer.special_ids)},
        sample_bytes=sample.bytes,
        sample_is_whole_text=sample.whole,
        words=words,
        tokens=tokens,
        tokens_per_word=tokens / max(words, 1),
        characters_per_token=characters / max(tokens, 1),
        single_piece_word_share=single_words / max(words, 1),
        unknown_token_share=unknown_tokens / max(tokens, 1),
        unknown_word_share=unknown_words / max(words, 1),
        hangul_syllables=syllables,
        hangul_coverage=1 - unknown_syllables / syllables if syllables else None,
        hangul_pieces=len(pieces),
        # The 2,350 syllables are those that EUC-KR writes in two bytes.
        ksx1001_pieces=sum(len(syllable.encode("euc_kr", "ignore")) == 2 for syllable in pieces),
        longest_pieces=_longest_pieces(tokenizer),
    )


class _Sample:
    """The beginning of a text, in batches; knows afterwards how much it was and whether it was all."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = texts
        self.bytes = 0
        self.whole = True

    def batches(self) -> Iterator[list[str]]:
        batch: list[str] = []
        for text in self.texts:
            if self.bytes >= SAMPLE_BYTES:
                self.whole = False
                break
            raw = unicodedata.normalize("NFC", text).encode("utf-8")
            room = SAMPLE_BYTES - self.bytes
            if len(raw) > room:
                self.whole = False
                raw = raw[:room]
            self.bytes += len(raw)
            batch.append(raw.decode("utf-8", "ignore"))
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _syllable_pieces(tokenizer: Tokenizer) -> list[str]:
    """The Hangul syllables that the tokenizer has as one piece; a "▁" before it is no part of it."""
    found = []
    for syllable, encoded in zip(_SYLLABLES, tokenizer.encode_batch(_SYLLABLES, specials=False), strict=True):
        ids = [id for id in encoded.ids if tokenizer.token(id) != "▁"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_id:
            found.append(syllable)
    return found


def _longest_pieces(tokenizer: Tokenizer) -> list[str]:
    """The longest pieces as text: byte-level pieces are unreadable in their raw form."""
    ids = [id for id in tokenizer.backend.get_vocab().values() if id not in tokenizer.special_ids]
    if tokenizer.kind == "bpe":
        texts = [tokenizer.decode([id]).strip() for id in ids]
    else:
        texts = [tokenizer.token(id).removeprefix("##").strip("▁") for id in ids]
    # [unused12] and its like are room for later, not pieces of text.
    return sorted(
        {text for text in texts if text and not re.fullmatch(r"\[.*\]", text)}, key=lambda text: (-len(text), text)
    )[:_LONGEST]
