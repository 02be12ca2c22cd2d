"""Two small worlds that a BERT of two layers can learn in a minute, and what can be done to them so that it cannot.

Topics: two documents, one of each topic's words; the next segment is of the same topic, a random one of the other.
Progressions: documents that count through the letters in steps, so that a hidden letter follows from the others.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import torch
from numpy.typing import NDArray

from malmoi.checkpoint.bundle import create_bundle
from malmoi.data.prepare import prepare_store
from malmoi.data.store import Store
from malmoi.objectives.examples import Examples
from malmoi.objectives.masked import MASKED
from malmoi.objectives.options import ExampleOptions
from malmoi.systems.bert import BertConfig
from malmoi.text.reading import Corpus
from malmoi.text.tokenizer import Tokenizer
from malmoi.text.tokenizer_training import train_tokenizer
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.loop import BatchSource, evaluate, train
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import evaluation_batches
from malmoi.values import IGNORED, Batch

ALONE = World(0, 1, torch.device("cpu"))

Spoil = Callable[[Batch, int, Tokenizer], Batch]


def learn_topics(spoil: Spoil, steps: int, sentences: int = 2000) -> Result:
    training = TrainingOptions(steps=steps, batch_size=32, lr=3e-3)
    learned, held_out = (make_topics(seed, sentences) for seed in (0, 1))
    return learn(learned, held_out, ExampleOptions(seq_len=32, short_share=0), training, spoil)


def make_topics(seed: int, sentences: int) -> list[list[str]]:
    """A document of topic X and one of topic Y: sentences of four to ten words, a fifth of them common to both."""
    draw = random.Random(seed)
    syllables = [first + second for first in "bdgklmnprst" for second in "aeiou"]
    invent = random.Random(0)  # the words are the same in every corpus
    vocabulary = ["".join(invent.choice(syllables) for _ in range(3)) for _ in range(60)]
    common, *topics = vocabulary[:20], vocabulary[20:40], vocabulary[40:]
    return [
        [
            " ".join(draw.choice(common if draw.random() < 0.2 else topic) for _ in range(draw.randint(4, 10)))
            for _ in range(sentences)
        ]
        for topic in topics
    ]


def learn_progressions(spoil: Spoil, steps: int, documents: int = 400) -> Result:
    training = TrainingOptions(steps=steps, batch_size=64, lr=3e-3)
    learned, held_out = make_progressions(0, documents), make_progressions(1, 40)
    return learn(learned, held_out, ExampleOptions(seq_len=32, short_share=0), training, spoil)


def make_progressions(seed: int, documents: int) -> list[list[str]]:
    """Documents that count on from sentence to sentence, from any letter, by any step, around the circle of 24."""
    draw = random.Random(seed)
    made = []
    for _ in range(documents):
        place, step = draw.randrange(24), draw.randint(1, 11)
        document = []
        for _ in range(40):
            letters = [ascii_lowercase[(place + step * number) % 24] for number in range(draw.randint(5, 7))]
            place += step * len(letters)
            document.append(" ".join(letters))
        made.append(document)
    return made


@dataclass(frozen=True)
class Result:
    """What a model reaches on held-out text."""

    loss: dict[str, float]
    accuracy: dict[str, float]


def learn(
    learned: list[list[str]],
    held_out: list[list[str]],
    examples: ExampleOptions,
    training: TrainingOptions,
    spoil: Spoil,
) -> Result:
    """Train a BERT of two layers on documents of sentences; measure it on others, spoilt in the same way."""
    sentences = (sentence for document in learned for sentence in document)
    tokenizer = train_tokenizer(sentences, kind="wordpiece", vocab_size=400)
    size = BertConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        # 0.02 suits wide models; in one this narrow a layer would add next to nothing at first.
        initializer_range=0.1,
        max_position_embeddings=examples.seq_len,
    )
    model = create_bundle(size, tokenizer).model
    torch.set_num_threads(1)  # in a model this small they would mostly wait for each other
    with tempfile.TemporaryDirectory() as folder:
        store, other = (
            _store_documents(documents, tokenizer, Path(folder) / name)
            for name, documents in (("learned", learned), ("held-out", held_out))
        )
        source = SpoiltBatches(Examples(store, examples), training.batch_size, spoil)
        for _ in train(model, Optimizer(model, training, ALONE), source, MASKED.task, Course(training), ALONE, seed=0):
            pass
        batches = enumerate(evaluation_batches(MASKED, other, examples, replace(training, eval_batches=32)))
        measured = (spoil(batch, number, tokenizer) for number, batch in batches)
        return Result(*evaluate(model, measured, MASKED.task, "fp32", ALONE.device))


class SpoiltBatches(BatchSource[Batch]):
    """The batches of a run after something has been done to each."""

    def __init__(self, examples: Examples, batch_size: int, spoil: Spoil) -> None:
        self._examples, self._batch_size, self._spoil = examples, batch_size, spoil

    def batch(self, step: int, positions: NDArray[np.int64]) -> Batch:
        return self._spoil(
            self._examples.batch(step, self._batch_size, positions), step, self._examples.store.tokenizer
        )

    def locate(self, step: int) -> str:
        return f"the batch of step {step}"


def leave(batch: Batch, number: int, tokenizer: Tokenizer) -> Batch:
    return batch


def shuffle_labels(batch: Batch, number: int, tokenizer: Tokenizer) -> Batch:
    """Each pair gets the label of another one."""
    labels = np.random.default_rng(number).permutation(batch.next_sentence_label)
    return replace(batch, next_sentence_label=labels)


def hide_everything(batch: Batch, number: int, tokenizer: Tokenizer) -> Batch:
    """Every word is to be predicted, and none is to be seen."""
    original = np.where(batch.labels == IGNORED, batch.input_ids, batch.labels)
    is_text = ~np.isin(original, [tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id])
    return replace(
        shuffle_labels(batch, number, tokenizer),
        input_ids=np.where(is_text, np.int64(tokenizer.mask_id or 0), original),
        labels=np.where(is_text, original, IGNORED),
    )


def _store_documents(documents: list[list[str]], tokenizer: Tokenizer, out: Path) -> Store:
    lines = [json.dumps({"text": "\n".join(sentences)}) for sentences in documents]
    text = out.with_suffix(".jsonl")
    text.write_text("\n".join(lines), "utf-8")
    prepare_store(Corpus([text]), tokenizer, out, sentences="lines", workers=1)
    return Store(out)
