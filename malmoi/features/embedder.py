"""Texts → vectors of sentences and words, and the hidden states themselves, with any engine.

N texts, W words, D dimensions, T tokens, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from malmoi.checkpoint.sentence_modules import SentenceModules, find_length
from malmoi.errors import MalmoiError
from malmoi.features.batches import fill_batch, plan_batches
from malmoi.features.engine import AttendingEngine, Engine, EngineOutput
from malmoi.features.layers import Combination, check_combination, combine_layers, parse_combination, parse_layers
from malmoi.features.options import BatchOptions, VectorOptions, WordOptions
from malmoi.features.pooling import finish_vectors, pool_tokens
from malmoi.features.sequences import SequenceMaker, Sequences
from malmoi.features.words import Span, WordVectors, assign_pieces, find_words, join_pieces, locate_words
from malmoi.text.tokenizer import Tokenizer

# Texts are encoded and sorted so many at a time: enough for batches of like lengths, little enough for the memory.
_BLOCK_TEXTS = 4096
_BLOCK_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class TextStates:
    """Everything a model makes of one text. `tokens` and `offsets` include [CLS] and [SEP]."""

    tokens: list[str]
    offsets: list[Span]
    hidden_states: NDArray[np.float32]  # (L + 1, T, hidden)
    attentions: NDArray[np.float32] | None  # (L, H, T, T)


@dataclass(frozen=True)
class _Recipe:
    """Options made definite for one model."""

    layers: tuple[int, ...]
    combine: Combination
    pool: str
    normalize: bool
    dimensions: int | None
    size: int


class Embedder:
    """An engine with its tokenizer, and what the model's folder says about sentence vectors, if it does."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, sentence: SentenceModules | None = None) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.sentence = sentence
        self._maker = SequenceMaker(tokenizer, find_length(sentence, engine.max_positions))
        self._pad_id = tokenizer.pad_id or 0

    def embed(self, texts: Sequence[str], options: VectorOptions) -> tuple[NDArray[np.float32], int]:
        """A vector for each text (N, D), and how many texts were longer than the model takes."""
        recipe = self._make_recipe(options)
        vectors = np.empty((len(texts), recipe.size), dtype=np.float32)
        cut = 0
        for begin, end in _cut_blocks(texts):
            encodings = self._maker.encode(texts[begin:end], begin)
            sequences = self._maker.lay_out([one.ids for one in encodings], begin, options.truncate)
            vectors[begin:end] = self._embed_block(sequences, end - begin, recipe, options.batch_tokens)
            cut += sequences.cut
        return vectors, cut

    def words(
        self,
        texts: Sequence[str] | Sequence[Sequence[str]],
        options: WordOptions,
        words: Sequence[Sequence[str]] | None,
    ) -> tuple[list[WordVectors], int]:
        """The words of each text with their vectors, and how many texts were longer than the model takes.

        A text is a string, or a list of words, which are then joined by spaces. `words` are the words of texts that are
        strings; without them words are what stands between white space.
        """
        if words is not None and len(words) != len(texts):
            raise MalmoiError(f"{len(words)} lists of words were given for {len(texts)} texts; each text needs one.")
        layers = parse_layers(options.layers, self.engine.num_hidden_layers)
        combine = parse_combination(options.combine)
        check_combination(combine, layers)
        strings = [text if isinstance(text, str) else _join_words(text, number) for number, text in enumerate(texts)]
        spans = [
            _find_spans(string, text if words is None else words[number], f"text {number}")
            for number, (string, text) in enumerate(zip(strings, texts, strict=True))
        ]
        before, behind = map(len, self._maker.frame)
        found: list[WordVectors] = []
        cut = 0
        for begin, end in _cut_blocks(strings):
            encodings = self._maker.encode(strings[begin:end], begin, offsets=True)
            sequences = self._maker.lay_out([one.ids for one in encodings], begin, options.truncate)
            pieces = self._piece_vectors(sequences, end - begin, layers, combine, options.batch_tokens)
            cut += sequences.cut
            for number, encoding, windows in zip(range(begin, end), encodings, pieces, strict=True):
                offsets = encoding.offsets[before : len(encoding.offsets) - behind]
                found.append(
                    _vectors_of_words(strings[number], spans[number], offsets, np.concatenate(windows), options)
                )
        return found, cut

    def hidden_states(self, texts: Sequence[str], options: BatchOptions, attentions: bool) -> list[TextStates]:
        """All layers of each text, one result a text; a text that is too long raises."""
        engine = self.engine
        if attentions and not isinstance(engine, AttendingEngine):
            raise MalmoiError("this engine does not give attention weights; load the model with malmoi.load.")
        layers = range(engine.num_hidden_layers + 1)
        states: list[TextStates] = []
        for begin, end in _cut_blocks(texts):
            encodings = self._maker.encode(texts[begin:end], begin, offsets=True)
            sequences = self._maker.lay_out([one.ids for one in encodings], begin, "error")
            found: dict[int, NDArray[np.float32]] = {}
            for places, lengths, output in self._run(sequences.ids, options.batch_tokens, layers, False):
                stacked = np.stack([output.hidden_states[layer] for layer in layers], axis=1)  # (B, L + 1, T, hidden)
                for place, length, rows in zip(places, lengths, stacked, strict=True):
                    found[int(place)] = rows[:, :length]
            for place, encoding in enumerate(encodings):
                weights = None
                if attentions and isinstance(engine, AttendingEngine):
                    weights = engine.attend(np.array([encoding.ids], dtype=np.int64))
                states.append(TextStates(encoding.tokens, encoding.offsets, found[place], weights))
        return states

    def count_dimensions(self, options: VectorOptions) -> int:
        """How long the vectors are that `embed` makes."""
        return self._make_recipe(options).size

    def count_word_dimensions(self, options: WordOptions) -> int:
        """How long the vectors are that `words` makes."""
        layers = parse_layers(options.layers, self.engine.num_hidden_layers)
        combine = parse_combination(options.combine)
        check_combination(combine, layers)
        return self.engine.hidden_size * (len(layers) if combine == "concat" else 1)

    def check_length(self, text: str, options: BatchOptions) -> None:
        """Raise where a text cannot be taken under these options."""
        self._maker.lay_out([self._maker.encode([text], 0)[0].ids], 0, options.truncate)

    def describe_cut(self, cut: int, count: int, truncate: str) -> str:
        """What happened to texts that were too long, in a sentence."""
        how = "only their beginnings count" if truncate == "right" else "they were taken in parts"
        return (
            f"{cut:,} of {count:,} texts have more than the {self._maker.limit:,} tokens that the model takes; {how}."
        )

    def _make_recipe(self, options: VectorOptions) -> _Recipe:
        engine, sentence = self.engine, self.sentence
        if options.pool is None and sentence is not None and sentence.unsupported is not None:
            raise MalmoiError(f"{sentence.unsupported}; name a --pool to get vectors of the encoder alone.")
        pool = options.pool or (sentence.pool if sentence is not None else "mean")
        normalize = options.normalize if options.normalize is not None else bool(sentence and sentence.normalize)
        layers = parse_layers(options.layers, engine.num_hidden_layers)
        combine = parse_combination(options.combine)
        check_combination(combine, layers)
        if pool == "pooler":
            if not engine.has_pooler:
                raise MalmoiError("--pool pooler: the files of this model hold no pooler; choose cls or mean.")
            if layers != (engine.num_hidden_layers,):
                raise MalmoiError("--pool pooler: the pooler stands on the last layer; leave --layers out.")
        size = engine.hidden_size * (len(layers) if combine == "concat" else 1)
        if options.dimensions is not None:
            if not 1 <= options.dimensions <= size:
                raise MalmoiError(
                    f"--dimensions {options.dimensions}: the vectors have {size:,}; choose 1 to {size:,}."
                )
            size = options.dimensions
        return _Recipe(layers, combine, pool, normalize, options.dimensions, size)

    def _embed_block(self, sequences: Sequences, count: int, recipe: _Recipe, batch_tokens: int) -> NDArray[np.float32]:
        pooler = recipe.pool == "pooler"
        rows: NDArray[np.float32] | None = None
        for places, lengths, output in self._run(sequences.ids, batch_tokens, () if pooler else recipe.layers, pooler):
            pooled = _pool_output(output, lengths, recipe)
            if rows is None:
                rows = np.empty((len(sequences.ids), pooled.shape[1]), dtype=np.float32)
            rows[places] = pooled
        if rows is None:
            return np.empty((0, recipe.size), dtype=np.float32)
        if len(rows) > count:
            rows = _average_windows(rows, sequences, count)
        return finish_vectors(rows, recipe.normalize, recipe.dimensions)

    def _piece_vectors(
        self, sequences: Sequences, count: int, layers: tuple[int, ...], combine: Combination, batch_tokens: int
    ) -> list[list[NDArray[np.float32]]]:
        """For each text its windows' vectors of pieces, special tokens left out, each (P, D)."""
        begin = len(self._maker.frame[0])
        found: dict[int, NDArray[np.float32]] = {}
        for places, _, output in self._run(sequences.ids, batch_tokens, layers, False):
            combined = combine_layers([output.hidden_states[layer] for layer in layers], combine)
            for place, row in zip(places, combined, strict=True):
                found[int(place)] = row[begin : begin + sequences.counts[place]]
        texts: list[list[NDArray[np.float32]]] = [[] for _ in range(count)]
        for place, text in enumerate(sequences.texts):
            texts[text].append(found[place])
        return texts

    def _run(
        self, ids: list[list[int]], batch_tokens: int, layers: Sequence[int], pooler: bool
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], EngineOutput]]:
        lengths = np.array([len(one) for one in ids], dtype=np.int64)
        for places in plan_batches(lengths, batch_tokens):
            batch, tokens, mask = fill_batch(ids, places, self._pad_id)
            yield places, tokens, self.engine.run(batch, np.zeros_like(batch), mask, layers, pooler)


def _pool_output(output: EngineOutput, lengths: NDArray[np.int64], recipe: _Recipe) -> NDArray[np.float32]:
    if output.pooler_output is not None and recipe.pool == "pooler":
        return output.pooler_output
    states = [output.hidden_states[layer] for layer in recipe.layers]
    if recipe.combine == "concat":  # pooling each layer by itself is the same, without a copy of all tokens
        return combine_layers([pool_tokens(state, lengths, recipe.pool) for state in states], "concat")
    return pool_tokens(combine_layers(states, recipe.combine), lengths, recipe.pool)


def _average_windows(rows: NDArray[np.float32], sequences: Sequences, count: int) -> NDArray[np.float32]:
    """One vector a text: the mean of its windows, each counting as much as it has tokens."""
    texts = np.array(sequences.texts)
    weights = np.maximum(np.array(sequences.counts, dtype=np.float32), 1)
    totals = np.bincount(texts, weights, count).astype(np.float32)
    means = np.zeros((count, rows.shape[1]), dtype=np.float32)
    np.add.at(means, texts, rows * (weights / totals[texts])[:, None])
    return means


def _find_spans(string: str, words: str | Sequence[str], place: str) -> list[Span]:
    return find_words(string) if isinstance(words, str) else locate_words(string, words, place)


def _vectors_of_words(
    string: str, spans: list[Span], offsets: list[Span], pieces: NDArray[np.float32], options: WordOptions
) -> WordVectors:
    owners = assign_pieces(spans, offsets)
    kept, lost = owners[: len(pieces)], owners[len(pieces) :]
    if lost.size:  # the text was cut: words that are not whole any more are left out
        spans = spans[: int(lost[lost >= 0].min(initial=len(spans)))]
        kept = np.where(kept < len(spans), kept, -1)
    vectors = join_pieces(pieces, kept, len(spans), options.pieces)
    return WordVectors([string[slice(*span)] for span in spans], spans, vectors)


def _cut_blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    begin = characters = 0
    for place, text in enumerate(texts):
        characters += len(text) if isinstance(text, str) else 0
        if characters >= _BLOCK_CHARACTERS or place + 1 - begin == _BLOCK_TEXTS:
            yield begin, place + 1
            begin, characters = place + 1, 0
    if begin < len(texts):
        yield begin, len(texts)


def _join_words(words: Sequence[str], number: int) -> str:
    for place, word in enumerate(words):
        if not isinstance(word, str) or not word or word.isspace():
            raise MalmoiError(f"text {number}: word {place} is {word!r}; a word is a text that is not empty.")
    return " ".join(words)
