"""tag: a tag for each word. The first piece of a word carries its tag; the other pieces are not asked.

Words are those of the examples, laid out as a text again: so the tokenizer sees what it would see anywhere, and a
"word" may be a single character, as in the files of KLUE. Long texts go in windows, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.objectives.task import LossPart
from malmoi.tasks.cutting import WordCut, learn_cut, read_cut, write_cut
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.entities import OUTSIDE, Entity, Scheme, find_entities, find_scheme, mark, score_entities
from malmoi.tasks.examples import Tagged, Untagged
from malmoi.tasks.kind import Kind, Mistake, softmax
from malmoi.tasks.metrics import accuracy, confusion, f1
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import TaggedSpan, Tagging
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.tasks.reading import find_labels
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_NO_WORD = -1


@dataclass(frozen=True, slots=True)
class WrittenText(Tagged):
    """A text as it was written, with the places of its words."""

    text: str
    spans: list[tuple[int, int]]

    def lay_out(self, *, by_characters: bool = False) -> tuple[str, list[tuple[int, int]]]:
        return self.text, self.spans


class TagWords(Kind[Tagged, Tagging]):
    metric: ClassVar[str] = "f1"
    reads_windows: ClassVar[bool] = True
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "tag_accuracy")
    fields: ClassVar[tuple[str, ...]] = ("tags", "spans", "entities")

    @classmethod
    def make_head(cls, examples: Sequence[Tagged], options: FinetuningOptions) -> Head:
        settings = write_cut(learn_cut(one.words for one in examples))
        return Head("tokens", tuple(find_labels(examples)), None, options.dropout, settings=settings)

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.head is not None
        return self.head.labels

    @cached_property
    def scheme(self) -> Scheme:
        """What the tags are."""
        return find_scheme(self.labels)

    @cached_property
    def cut(self) -> WordCut:
        """How the words were cut that the model has learned from."""
        assert self.head is not None
        return read_cut(self.head.settings)

    def take_texts(self, texts: Sequence[str]) -> list[Tagged]:
        """Texts as examples, cut into words as those were that the model has learned from."""
        cut = [(text, self.cut.find_words(text)) for text in texts]
        return [WrittenText(tuple(text[a:b] for a, b in spans), None, "", text, spans) for text, spans in cut]

    def _lay_out(self, example: Tagged) -> tuple[str, list[tuple[int, int]]]:
        return example.lay_out(by_characters=self.cut.form == "characters")

    def take(self, example: Tagged | Untagged) -> Tagged:
        return self.take_texts([example.text])[0] if isinstance(example, Untagged) else example

    def encode(self, examples: Sequence[Tagged]) -> Items:
        laid = [self._lay_out(one) for one in examples]
        encodings = TextEncoder(self.tokenizer, self.seq_len).encode_with_offsets([text for text, _ in laid])
        numbers = {label: number for number, label in enumerate(self.labels)}
        windows, owners, targets, notes = [], [], [], []
        for owner, (encoding, (text, spans), example) in enumerate(zip(encodings, laid, examples, strict=True)):
            words = _locate_words(text, spans)
            seen: set[int] = set()
            for window in (encoding, *encoding.overflowing):
                firsts = list(_find_first_pieces(window, text, words, seen))
                windows.append([window])
                owners.append(owner)
                notes += firsts
                tags = example.tags
                targets += [
                    IGNORED if tags is None or word == _NO_WORD else numbers.get(tags[word], IGNORED) for word in firsts
                ]
        return lay_items(windows, owners, token_targets=np.array(targets, np.int64), notes=np.array(notes, np.int32))

    def count(self, batch: TaskBatch) -> dict[str, int]:
        assert batch.targets is not None
        return {self.loss_name: int((batch.targets != IGNORED).sum())}

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        from torch.nn import functional

        assert batch.targets is not None
        logits = self.outputs(model, batch, device).flatten(0, 1).float()  # (B · T, labels)
        targets = to_tensor(batch.targets, device).flatten()
        total = functional.cross_entropy(logits, targets, reduction="sum")
        right = (logits.argmax(dim=1) == targets).sum()
        return {self.loss_name: LossPart(total, int((batch.targets != IGNORED).sum()), right)}

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        logits: Tensor = model.task_head(encode_batch(model, batch, device))  # (B, T, labels)
        return logits

    def interpret(
        self, examples: Sequence[Tagged], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Tagging]:
        assert items.notes is not None
        found: list[dict[int, tuple[str, float]]] = [{} for _ in examples]
        for item, logits in enumerate(outputs):
            words = items.notes[items.tokens(item)]
            shares = softmax(logits[: len(words)])
            for place in np.flatnonzero(words != _NO_WORD):
                best = int(shares[place].argmax())
                found[items.owners[item]][int(words[place])] = self.labels[best], float(shares[place, best])
        return [self._complete(example, tags) for example, tags in zip(examples, found, strict=True)]

    def _complete(self, example: Tagged, found: Mapping[int, tuple[str, float]]) -> Tagging:
        """The tags of a sentence and what they mean, from those of the words that a piece begins with."""
        text, spans = self._lay_out(example)
        tags = _fill_in(example.words, found, self.scheme)
        entities = []
        for kind, first, last in find_entities(mark(tags, self.scheme)):
            start, end = self.cut.trim(text, (spans[first][0], spans[last][1]))
            scores = [found[word][1] for word in range(first, last + 1) if word in found]
            entities.append(TaggedSpan(kind, text[start:end], start, end, float(np.mean(scores)) if scores else 0.0))
        return Tagging(example.words, tuple(tags), tuple(spans), tuple(entities))

    def measure(self, examples: Sequence[Tagged], predictions: Sequence[Tagging]) -> dict[str, float]:
        gold, found = _line_up(examples, predictions)
        scores = score_entities(
            [mark(one.tags or (), self.scheme) for one in examples],
            [mark(one.tags, self.scheme) for one in predictions],
        )
        return {
            "f1": scores.f1,
            "precision": scores.precision,
            "recall": scores.recall,
            "tag_accuracy": accuracy(gold, found),
        }

    def find_mistake(self, example: Tagged, prediction: Tagging) -> Mistake | None:
        text, spans = self._lay_out(example)
        expected, found = (
            set(find_entities(mark(tags, self.scheme))) for tags in (example.tags or (), prediction.tags)
        )
        if expected == found:
            return None
        show = [
            ", ".join(
                f"{text[spans[one.first][0] : spans[one.last][1]]}/{one.type}" for one in sorted(side, key=_place)
            )
            for side in (expected, found)
        ]
        return Mistake(text, show[0] or "none", show[1] or "none", float(len(expected ^ found)))

    def to_record(self, example: Tagged, prediction: Tagging) -> dict[str, Any]:
        entities = [
            {"label": one.label, "text": one.text, "start": one.start, "end": one.end, "score": one.score}
            for one in prediction.entities
        ]
        return {"tags": list(prediction.tags), "spans": [list(one) for one in prediction.spans], "entities": entities}


class TagClasses(TagWords):
    """Tags that make no entities, such as parts of speech: each word counts for itself."""

    metric: ClassVar[str] = "tag_accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("tag_accuracy", "macro_f1")
    guess: ClassVar[str] = "the tags mark no entities (as B-LOC, I-LOC and O do), so each word is judged for itself."

    def measure(self, examples: Sequence[Tagged], predictions: Sequence[Tagging]) -> dict[str, float]:
        gold, found = _line_up(examples, predictions)
        return {"tag_accuracy": accuracy(gold, found), "macro_f1": f1(gold, found, "macro")}

    def confuse(
        self, examples: Sequence[Tagged], predictions: Sequence[Tagging]
    ) -> tuple[list[str], NDArray[np.int64]] | None:
        return list(self.labels), confusion(*_line_up(examples, predictions), self.labels)

    def find_mistake(self, example: Tagged, prediction: Tagging) -> Mistake | None:
        words = zip(example.words, example.tags or (), prediction.tags, strict=True)
        wrong = [(word, gold, found) for word, gold, found in words if gold != found]
        if not wrong:
            return None
        expected, predicted = (", ".join(f"{one[0]}/{one[place]}" for one in wrong) for place in (1, 2))
        return Mistake(self._lay_out(example)[0], expected, predicted, float(len(wrong)))


def _line_up(examples: Sequence[Tagged], predictions: Sequence[Tagging]) -> tuple[list[str], list[str]]:
    """The tags of all words, right and predicted."""
    pairs = [
        pair
        for one, other in zip(examples, predictions, strict=True)
        for pair in zip(one.tags or (), other.tags, strict=True)
    ]
    return [gold for gold, _ in pairs], [found for _, found in pairs]


def _locate_words(text: str, spans: list[tuple[int, int]]) -> NDArray[np.int32]:
    """The word of each character."""
    words = np.full(len(text) + 1, _NO_WORD, np.int32)
    for number, (start, end) in enumerate(spans):
        words[start:end] = number
    return words


def _find_first_pieces(window: Any, text: str, words: NDArray[np.int32], seen: set[int]) -> Iterator[int]:
    """For each token the word whose first piece it is, if it is that of one."""
    for (start, end), special in zip(window.offsets, window.special_tokens_mask, strict=True):
        # Pieces of some tokenizers begin with the space before them.
        while start < end and text[start].isspace():
            start += 1
        word = _NO_WORD if special or start >= end else int(words[start])
        if word in seen:
            word = _NO_WORD
        elif word != _NO_WORD:
            seen.add(word)
        yield word


def _place(entity: Entity) -> int:
    return entity.first


def _fill_in(words: Sequence[str], found: Mapping[int, tuple[str, float]], scheme: Scheme) -> list[str]:
    """A tag for every word, also for those that no piece begins with: letters go on with the word before, and what is
    none belongs to an entity only where that goes on behind it."""
    tags: list[str] = []
    filled = []
    for number, word in enumerate(words):
        before = tags[-1] if tags else OUTSIDE
        if number in found:
            tags.append(found[number][0])
        elif scheme == "classes" or any(map(str.isalnum, word)):
            tags.append(_go_on(before, scheme))
        else:
            tags.append(OUTSIDE)
            filled.append(number)
    for number in filled:
        if 0 < number < len(words) - 1:
            before, after = tags[number - 1], tags[number + 1]
            if after != OUTSIDE and after == _go_on(before, scheme):
                tags[number] = after
    return tags


def _go_on(before: str, scheme: Scheme) -> str:
    """The tag of a word that belongs to the one before."""
    if scheme != "marks":
        return before
    return f"I-{before.partition('-')[2]}" if before[:2] in ("B-", "I-") else OUTSIDE
