"""tag: a tag for each word. The first piece of a word carries its tag; the other pieces are not asked.

Words are those of the examples, laid out as a text again: so the tokenizer sees what it would see anywhere, and a
"word" may be a single character, as in the files of KLUE. Long texts go in windows, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.objectives.task import LossPart
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.entities import find_entities, score_entities
from malmoi.tasks.examples import Tagged
from malmoi.tasks.kind import Kind, Mistake, softmax
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import TaggedSpan, Tagging
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.tasks.reading import find_labels
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_NO_WORD = -1
_OUTSIDE = "O"
# How a text without given words is cut: as the words to learn from were.
_WORDS = {"spaces": r"\S+", "punctuation": r"\w+|[^\w\s]", "characters": r"(?s:.)"}


@dataclass(frozen=True, slots=True)
class WrittenText(Tagged):
    """A text as it was written, with the places of its words."""

    text: str
    spans: list[tuple[int, int]]

    def lay_out(self) -> tuple[str, list[tuple[int, int]]]:
        return self.text, self.spans


class TagWords(Kind[Tagged, Tagging]):
    metric: ClassVar[str] = "f1"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "tag_accuracy")

    @classmethod
    def make_head(cls, examples: Sequence[Tagged], options: FinetuningOptions) -> Head:
        return Head(
            "tokens", tuple(find_labels(examples)), None, options.dropout, settings={"words": _find_cut(examples)}
        )

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.head is not None
        return self.head.labels

    def take_texts(self, texts: Sequence[str]) -> list[Tagged]:
        """Texts as examples, cut into words as those were that the model has learned from."""
        cut = "spaces" if self.head is None else str(self.head.settings.get("words", "spaces"))
        return [_cut_words(text, _WORDS.get(cut, _WORDS["spaces"])) for text in texts]

    def encode(self, examples: Sequence[Tagged]) -> Items:
        laid = [one.lay_out() for one in examples]
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
        return [_complete(example, tags) for example, tags in zip(examples, found, strict=True)]

    def measure(self, examples: Sequence[Tagged], predictions: Sequence[Tagging]) -> dict[str, float]:
        gold, found = [one.tags or () for one in examples], [one.tags for one in predictions]
        precision, recall, f1 = score_entities(gold, found)
        right = sum(a == b for one, other in zip(gold, found, strict=True) for a, b in zip(one, other, strict=True))
        return {
            "f1": f1,
            "precision": precision,
            "recall": recall,
            "tag_accuracy": right / max(1, sum(map(len, gold))),
        }

    def find_mistake(self, example: Tagged, prediction: Tagging) -> Mistake | None:
        text, spans = example.lay_out()
        expected = {(kind, spans[first][0], spans[last][1]) for kind, first, last in find_entities(example.tags or ())}
        found = {(one.label, one.start, one.end) for one in prediction.entities}
        if expected == found:
            return None
        show = [
            ", ".join(f"{text[a:b]}/{kind}" for kind, a, b in sorted(one, key=lambda e: e[1]))
            for one in (expected, found)
        ]
        return Mistake(text, show[0] or "none", show[1] or "none", float(len(expected ^ found)))

    def to_record(self, example: Tagged, prediction: Tagging) -> dict[str, Any]:
        entities = [
            {"label": one.label, "text": one.text, "start": one.start, "end": one.end, "score": one.score}
            for one in prediction.entities
        ]
        return {"tags": list(prediction.tags), "spans": [list(one) for one in prediction.spans], "entities": entities}


def _cut_words(text: str, pattern: str) -> Tagged:
    spans = [found.span() for found in re.finditer(pattern, text)]
    return WrittenText(tuple(text[start:end] for start, end in spans), None, "", text, spans)


def _find_cut(examples: Sequence[Tagged]) -> str:
    if any(word.isspace() for one in examples for word in one.words):
        return "characters"
    mixed = re.compile(r"\w[^\w\s]|[^\w\s]\w")
    return "spaces" if any(mixed.search(word) for one in examples for word in one.words) else "punctuation"


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


def _complete(example: Tagged, found: dict[int, tuple[str, float]]) -> Tagging:
    """A tag for every word, also for those that no piece begins with: they go on with the word before."""
    text, spans = example.lay_out()
    tags: list[str] = []
    for number, word in enumerate(example.words):
        if number in found:
            tags.append(found[number][0])
        elif word.isspace():
            tags.append(_OUTSIDE)
        else:
            before = tags[-1] if tags else _OUTSIDE
            tags.append(f"I-{before.partition('-')[2]}" if before[:2] in ("B-", "I-") else _OUTSIDE)
    for number, word in enumerate(example.words[1:-1], 1):
        # A space belongs to an entity that goes on behind it.
        if word.isspace() and tags[number + 1][:2] == "I-" and tags[number - 1][1:] == tags[number + 1][1:]:
            tags[number] = tags[number + 1]
    entities = []
    for kind, first, last in find_entities(tags):
        start, end = spans[first][0], spans[last][1]
        scores = [found[word][1] for word in range(first, last + 1) if word in found]
        entities.append(TaggedSpan(kind, text[start:end], start, end, float(np.mean(scores)) if scores else 0.0))
    return Tagging(example.words, tuple(tags), tuple(spans), tuple(entities))
