"""Learn a tokenizer from text: WordPiece, byte-level BPE or Unigram, on the trainers of the `tokenizers` library.

The same text gives the same tokenizer, byte for byte. The library alone does not promise that: it numbers characters
in the order of a randomly seeded hash table and breaks ties by these numbers. So for WordPiece and Unigram the text is
read twice: first to count its characters, which settles the alphabet and its order, then to learn the pieces. BPE
starts from the 256 bytes and needs one reading.

Pipelines, all ending in [CLS] A [SEP] or [CLS] A [SEP] B [SEP]:
- wordpiece: BERT's cleaning and spaces around CJK ideographs, NFC, split at white space and punctuation.
- bpe: NFC, then bytes, split as GPT-2 does, no space put before the first word; decoding gives back the NFC text.
- unigram: BERT's cleaning, NFC (not NFKC), split at white space, "▁" marks the beginning of a word.
Lower-casing also strips accents, as in BERT's uncased models, but Hangul is composed again and never left as jamo.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer
from malmoi.writing import writing

KINDS = ("wordpiece", "bpe", "unigram")
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}

_SPECIALS = list(SPECIAL_TOKENS.values())
_BYTES = 256
# Share of the characters of a text (as they occur) that its alphabet has to cover unless the user sets its size.
_COVERAGE = 0.99
# The library's sums differ in the last digits with the order of its threads; so many digits never do.
_SCORE_DIGITS = 3

# Learning says that it goes on: first after so many seconds, then at such intervals.
_SECONDS_OF_SILENCE, _SECONDS_BETWEEN_LINES = 5.0, 15.0


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: str,
    vocab_size: int,
    lowercase: bool = False,
    min_frequency: int = 2,
    alphabet: int | None = None,
) -> Tokenizer:
    """Learn a tokenizer of `vocab_size` pieces, or of as many as the text supports, special tokens included.

    `alphabet` is how many different characters become pieces, the most frequent first; by default a quarter of the
    vocabulary size, or more where a hundredth of the text would be lost. `min_frequency` is how often a pair must occur
    to be merged (WordPiece and BPE). An iterator that cannot be read twice is kept in a temporary file.
    """
    if kind not in KINDS:
        raise MalmoiError(f"--kind {kind} is unknown; choose one of {', '.join(KINDS)}.")
    if alphabet is not None and alphabet < 1:
        raise MalmoiError(f"--alphabet {alphabet} must be at least 1.")
    if min_frequency < 1:
        raise MalmoiError(f"--min-frequency {min_frequency} must be at least 1.")
    pipeline = _pipeline(kind, lowercase)
    model: models.Model
    if kind == "bpe":
        smallest = len(_SPECIALS) + _BYTES
        if vocab_size < smallest:
            raise MalmoiError(
                f"--vocab-size {vocab_size} is too small: byte-level BPE starts from {_BYTES} bytes and "
                f"{len(_SPECIALS)} special tokens, so {smallest} is the smallest that works."
            )
        model = _train_bpe(pipeline, texts, vocab_size, min_frequency)
    else:
        with _readable_twice(texts) as texts:
            counts = _count_characters(pipeline, texts)
            characters = _choose_alphabet(pipeline, counts, kind, vocab_size, alphabet)
            if kind == "wordpiece":
                model = _train_wordpiece(pipeline, texts, characters, vocab_size, min_frequency)
            else:
                model = _train_unigram(pipeline, texts, characters, vocab_size)
    # A new pipeline, because the trainers leave their own special tokens in the old one.
    pipeline = _pipeline(kind, lowercase)
    pipeline.model = model
    _finish(pipeline)
    config = {
        # Not BertTokenizer: transformers would build its own normalizer for that class and lose NFC.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "do_lower_case": lowercase,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        **SPECIAL_TOKENS,
    }
    return Tokenizer(pipeline, config)


# --- the pipeline -------------------------------------------------------------------------------------------------


def _pipeline(kind: str, lowercase: bool) -> Backend:
    backend = Backend({"wordpiece": models.WordPiece, "bpe": models.BPE, "unigram": models.Unigram}[kind]())
    steps: list[normalizers.Normalizer] = [normalizers.NFC()]
    if kind != "bpe" or lowercase:
        cleaning = normalizers.BertNormalizer(
            clean_text=kind != "bpe",  # BPE promises to give every character back
            handle_chinese_chars=kind == "wordpiece",
            strip_accents=lowercase,
            lowercase=lowercase,
        )
        # NFC comes last: cleaning can bring a letter and its accent together, and stripping accents takes Hangul apart.
        steps.insert(0, cleaning)
    backend.normalizer = normalizers.Sequence(steps)
    if kind == "wordpiece":
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece(prefix="##")
    elif kind == "bpe":
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
    else:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
        )
        backend.decoder = decoders.Metaspace(prepend_scheme="always")
    return backend


def _finish(backend: Backend) -> None:
    backend.add_special_tokens(_SPECIALS)
    ends = [(token, _SPECIALS.index(token)) for token in ("[CLS]", "[SEP]")]
    template = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends
    )
    if isinstance(backend.model, models.BPE):
        # A piece holds the space before its word; its offsets should not.
        trimming = processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
        backend.post_processor = processors.Sequence([trimming, template])
    else:
        backend.post_processor = template


# --- the alphabet -------------------------------------------------------------------------------------------------


def _count_characters(backend: Backend, texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(backend.normalizer.normalize_str(text))
    for character in [character for character in counts if character.isspace()]:
        del counts[character]
    if not counts:
        raise MalmoiError("There is no text to learn a tokenizer from; give a file that is not empty.")
    return counts


def _choose_alphabet(
    backend: Backend, counts: Counter[str], kind: str, vocab_size: int, alphabet: int | None
) -> list[str]:
    """The characters to keep, sorted; an error where they do not fit into the vocabulary."""
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    if alphabet is None:
        covered, needed = 0, 0
        while covered < _COVERAGE * counts.total():
            covered += counts[ranked[needed]]
            needed += 1
        alphabet = max(vocab_size // 4, needed)
    kept = sorted(ranked[:alphabet])
    pieces = len(_alphabet_pieces(backend, kept)) if kind == "wordpiece" else len({*kept, "▁"})
    smallest = len(_SPECIALS) + pieces
    if vocab_size < smallest:
        raise MalmoiError(
            f"--vocab-size {vocab_size} is too small: the text has {len(ranked)} distinct characters, of which "
            f"{len(kept)} are to be kept, so {smallest} is the smallest that works; ask for more, or keep fewer "
            "characters with --alphabet."
        )
    return kept


def _alphabet_pieces(backend: Backend, characters: list[str]) -> list[str]:
    """Each character as a word's beginning and, unless it always stands alone (CJK, punctuation), inside a word."""

    def joins(character: str) -> bool:
        return len(backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(f"a{character}"))) == 1

    return [*characters, *(f"##{character}" for character in characters if joins(character))]


# --- the three trainers -------------------------------------------------------------------------------------------


def _train_wordpiece(
    backend: Backend, texts: Iterable[str], characters: list[str], vocab_size: int, min_frequency: int
) -> models.WordPiece:
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        show_progress=False,
        # Handing over the alphabet as special tokens fixes its numbers, and by them every tie.
        special_tokens=[*_SPECIALS, *_alphabet_pieces(backend, characters)],
        initial_alphabet=characters,
        limit_alphabet=len(characters),
    )
    _learn(backend, texts, trainer)
    return models.WordPiece(_model(backend)["vocab"], unk_token="[UNK]", max_input_chars_per_word=100)


def _train_bpe(backend: Backend, texts: Iterable[str], vocab_size: int, min_frequency: int) -> models.BPE:
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        show_progress=False,
        special_tokens=_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    seen = 0

    def watched() -> Iterator[str]:
        nonlocal seen
        for text in texts:
            seen += bool(text and not text.isspace())
            yield text

    _learn(backend, watched(), trainer)
    if not seen:
        raise MalmoiError("There is no text to learn a tokenizer from; give a file that is not empty.")
    model = _model(backend)
    return models.BPE(model["vocab"], [(left, right) for left, right in model["merges"]], fuse_unk=False)


def _train_unigram(backend: Backend, texts: Iterable[str], characters: list[str], vocab_size: int) -> models.Unigram:
    kept = set(characters)

    class Blanks(dict[int, str]):
        # str.translate asks only once for each new character.
        def __missing__(self, code: int) -> str:
            character = chr(code)
            self[code] = character if character in kept else " "
            return self[code]

    blanks = Blanks()
    normalizer = backend.normalizer  # fetched here, since the backend is locked while it trains
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, show_progress=False, special_tokens=_SPECIALS, unk_token="[UNK]"
    )
    known = (normalizer.normalize_str(text).translate(blanks) for text in texts)
    _learn(backend, known, trainer)
    scores = {piece: round(score, _SCORE_DIGITS) for piece, score in _model(backend)["vocab"][len(_SPECIALS) :]}
    # Characters that were not worth a piece are given the lowest score plus a step for each, in random order.
    floor = min(scores.values())
    band = floor + 0.0001 * (len(characters) + 1) + 10**-_SCORE_DIGITS
    for piece, score in scores.items():
        if len(piece) == 1 and score <= band:
            scores[piece] = floor
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return models.Unigram([*((token, 0.0) for token in _SPECIALS), *ranked], _SPECIALS.index("[UNK]"), False)


def _model(backend: Backend) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(backend.to_str())["model"]
    return model


# --- reading twice, and being interrupted -------------------------------------------------------------------------


@contextmanager
def _readable_twice(texts: Iterable[str]) -> Iterator[Iterable[str]]:
    if not isinstance(texts, Iterator):
        yield texts
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        with writing(Path(tempfile.gettempdir())):
            file.writelines(json.dumps(text) + "\n" for text in texts)
            file.flush()

        class Kept:
            def __iter__(self) -> Iterator[str]:
                file.seek(0)
                return map(json.loads, file)

        yield Kept()


def _learn(backend: Backend, texts: Iterable[str], trainer: trainers.Trainer) -> None:
    """Train in a thread of its own, because the library does not listen to Ctrl-C while it learns, and say now and then
    that it does: it is silent for minutes, and nobody knows how many."""
    failures: list[BaseException] = []
    read = threading.Event()

    def watched() -> Iterator[str]:
        yield from texts
        read.set()

    def target() -> None:
        try:
            backend.train_from_iterator(watched(), trainer)
        except BaseException as failure:  # Rust's panics are no Exceptions
            failures.append(failure)
        read.set()

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    while not read.wait(0.1):
        pass
    began = time.monotonic()
    next_line = began + _SECONDS_OF_SILENCE
    while thread.is_alive():
        thread.join(0.05)
        if time.monotonic() >= next_line:
            print(f"the text is read, learning pieces: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            next_line += _SECONDS_BETWEEN_LINES
    if failures:
        raise failures[0]
