"""The reference mode: BERT's published example builder, random call for random call.

`objectives/pairs.py` and `masking.py` draw from the same distributions but by arrays, so their examples differ one by
one. This is the builder as it was published, a loop over tokens that asks Python's generator the same questions in the
same order, so that its output can be compared to the last token. So it also passes over words larger than what
is to be predicted, which `masking.py` takes apart where nothing else is left. It holds all examples in memory: for
proof, not for training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from malmoi.data.store import Store
from malmoi.objectives.options import ExampleOptions

Sentences = list[list[str]]


@dataclass(frozen=True)
class Instance:
    """One example, in the words of the published builder."""

    tokens: list[str]
    segment_ids: list[int]
    masked_positions: list[int]
    masked_labels: list[str]
    is_random_next: bool


def read_documents(store: Store) -> list[Sentences]:
    """The documents of a store as lists of sentences, each a list of token strings."""
    names = {number: token for token, number in store.tokenizer.backend.get_vocab().items()}
    sentences = [
        [names[int(number)] for number in store.tokens[begin:end]]
        for begin, end in zip(store.sentences[:-1], store.sentences[1:], strict=True)
    ]
    return [sentences[begin:end] for begin, end in zip(store.document_begins, store.document_ends, strict=True)]


def build_reference(store: Store, options: ExampleOptions) -> list[Instance]:
    """All examples of a store as the published builder makes them with `random.Random(seed)`."""
    vocabulary = store.tokenizer.backend.get_vocab()
    builder = ReferenceBuilder(sorted(vocabulary, key=vocabulary.__getitem__), options, Random(options.seed))
    return builder.build(read_documents(store), options.duplicates or 1)


def digest_instances(instances: Sequence[Instance]) -> str:
    """A digest to compare two builders by."""
    rows = [
        (one.tokens, one.segment_ids, one.masked_positions, one.masked_labels, one.is_random_next) for one in instances
    ]
    return hashlib.sha256(repr(rows).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class ReferenceBuilder:
    """The published builder. `vocabulary` is what random tokens are drawn from, in the order of ids."""

    vocabulary: list[str]
    options: ExampleOptions
    random: Random

    def build(self, documents: list[Sentences], duplicates: int) -> list[Instance]:
        documents = list(documents)
        self.random.shuffle(documents)
        instances = [
            instance
            for _ in range(duplicates)
            for number in range(len(documents))
            for instance in self._walk(documents, number)
        ]
        self.random.shuffle(instances)
        return instances

    def _walk(self, documents: list[Sentences], number: int) -> list[Instance]:
        random, document = self.random, documents[number]
        most = self.options.seq_len - 3
        target = most
        if random.random() < self.options.short_share:
            target = random.randint(2, most)
        instances = []
        cursor = 0
        while cursor < len(document):
            end, length = cursor, 0
            while end < len(document) and length < target:
                length += len(document[end])
                end += 1
            count = end - cursor
            cut = cursor + (random.randint(1, count - 1) if count > 1 else 1)
            a = _join(document[cursor:cut])
            is_random_next = count == 1 or random.random() < 0.5
            if is_random_next:
                b = self._draw_segment(documents, number, target - len(a))
                cursor = cut  # what was not used is put back
            else:
                b = _join(document[cut:end])
                cursor = end
            self._truncate(a, b, most)
            instances.append(self._mask(a, b, is_random_next))
        return instances

    def _draw_segment(self, documents: list[Sentences], number: int, target: int) -> list[str]:
        for _ in range(10):
            other = self.random.randint(0, len(documents) - 1)
            if other != number:
                break
        document = documents[other]
        segment: list[str] = []
        for sentence in document[self.random.randint(0, len(document) - 1) :]:
            segment.extend(sentence)
            if len(segment) >= target:
                break
        return segment

    def _truncate(self, a: list[str], b: list[str], most: int) -> None:
        while len(a) + len(b) > most:
            longer = a if len(a) > len(b) else b
            del longer[0 if self.random.random() < 0.5 else -1]

    def _mask(self, a: list[str], b: list[str], is_random_next: bool) -> Instance:
        random = self.random
        tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
        candidates = self._find_candidates(tokens)
        random.shuffle(candidates)
        budget = min(self.options.count_predictions(), max(1, round(len(tokens) * self.options.mask_share)))
        corrupted = list(tokens)
        chosen: list[int] = []
        for positions in candidates:
            if len(chosen) >= budget:
                break
            if len(chosen) + len(positions) > budget:
                continue
            for position in positions:
                chosen.append(position)
                if random.random() < 0.8:
                    corrupted[position] = "[MASK]"
                elif random.random() >= 0.5:
                    corrupted[position] = self.vocabulary[random.randint(0, len(self.vocabulary) - 1)]
        chosen.sort()
        return Instance(
            tokens=corrupted,
            segment_ids=[0] * (len(a) + 2) + [1] * (len(b) + 1),
            masked_positions=chosen,
            masked_labels=[tokens[position] for position in chosen],
            is_random_next=is_random_next,
        )

    def _find_candidates(self, tokens: list[str]) -> list[list[int]]:
        candidates: list[list[int]] = []
        for position, token in enumerate(tokens):
            if token in ("[CLS]", "[SEP]"):
                continue
            if self.options.whole_words and candidates and token.startswith("##"):
                candidates[-1].append(position)
            else:
                candidates.append([position])
        return candidates


def _join(sentences: Sentences) -> list[str]:
    return [token for sentence in sentences for token in sentence]
