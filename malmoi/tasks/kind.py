"""What a task is: how its examples become items, what is lost on them, and what the outputs mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.features.engine import HeadedEngine
from malmoi.objectives.task import LossPart, Task
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.lengths import USUAL_SEQ_LEN
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.ragged import Items, TaskBatch, join_items
from malmoi.text.given import Text
from malmoi.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ExampleT = TypeVar("ExampleT")
PredictionT = TypeVar("PredictionT")

_BLOCK = 512  # examples that are encoded at a time


@dataclass(frozen=True)
class Mistake:
    """A prediction that is wrong, for a person to look at, and how sure the model was of it."""

    text: str
    expected: str
    predicted: str
    badness: float


class Kind(ABC, Generic[ExampleT, PredictionT]):
    """A task on a model: `head` says what it answers, `seq_len` how long its sequences may be."""

    # The figure that decides which weights are the best, and all that may.
    metric: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    default_seq_len: ClassVar[int] = USUAL_SEQ_LEN
    # What a record of a prediction holds.
    fields: ClassVar[tuple[str, ...]]
    # Whether long texts are read to their end, in several sequences; else they are cut.
    reads_windows: ClassVar[bool] = False
    # What was guessed of the examples, to be said before a run begins.
    guess: ClassVar[str] = ""

    def __init__(self, tokenizer: Tokenizer, head: Head | None, seq_len: int) -> None:
        self.tokenizer, self.head, self.seq_len = tokenizer, head, seq_len
        # How many of the texts that were encoded would have had each length, were they not cut.
        self.lengths: Counter[int] = Counter()

    @classmethod
    @abstractmethod
    def make_head(cls, examples: Sequence[ExampleT], options: FinetuningOptions) -> Head | None:
        """The head for what these examples ask; None for a task on the encoder alone."""

    def start(self, model: Any, examples: Sequence[ExampleT], *, is_fresh: bool) -> None:
        """Prepare a model for learning from these examples; `is_fresh`: its head has learned nothing yet."""

    def finish(self, model: Any) -> None:
        """Make of a model that has learned one whose outputs are answers as they stand."""

    def take(self, example: Any) -> ExampleT:
        """An example as it was read, in the form that is encoded."""
        taken: ExampleT = example
        return taken

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT]) -> Items:
        """Items with targets where the examples have answers."""

    def encode_all(self, examples: Sequence[ExampleT]) -> Items:
        """The same for any number of examples: what the tokenizer says of each takes many times the room of its ids, so
        it is asked a block at a time."""
        blocks = [examples[begin : begin + _BLOCK] for begin in range(0, len(examples), _BLOCK)]
        if len(blocks) < 2:
            return self.encode(examples)
        return join_items([self.encode(block) for block in blocks], [len(block) for block in blocks])

    def encode_texts(self, texts: Sequence[Text]) -> list[tokenizers.Encoding]:
        """Texts and pairs as sequences; `lengths` keeps count of how long they were."""
        encoder = TextEncoder(self.tokenizer, self.seq_len)
        encodings = encoder.encode(texts)
        self.lengths.update(encoder.lengths)
        return encodings

    @abstractmethod
    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]: ...

    @abstractmethod
    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        """What is predicted from: (B, …)"""

    def compute(self, engine: HeadedEngine, batch: TaskBatch) -> NDArray[np.float32]:
        """The same as `outputs`, by an engine that is not torch."""
        return engine.run_head(batch.input_ids, batch.token_type_ids, batch.attention_mask)

    @abstractmethod
    def interpret(
        self, examples: Sequence[ExampleT], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[PredictionT]:
        """A prediction for each example, from the outputs of its items."""

    @abstractmethod
    def measure(self, examples: Sequence[ExampleT], predictions: Sequence[PredictionT]) -> dict[str, float]: ...

    def find_thresholds(self, examples: Sequence[ExampleT], predictions: Sequence[PredictionT]) -> dict[str, float]:
        """What another threshold would give, for tasks that have one."""
        return {}

    @abstractmethod
    def find_mistake(self, example: ExampleT, prediction: PredictionT) -> Mistake | None: ...

    @abstractmethod
    def to_record(self, example: ExampleT, prediction: PredictionT) -> dict[str, Any]:
        """A prediction as a line of JSON."""

    def count(self, batch: TaskBatch) -> dict[str, int]:
        return {self.loss_name: int(batch.real.sum())}

    loss_name: ClassVar[str] = "task"

    @property
    def task(self) -> Task[TaskBatch]:
        return Task(self.count, self.losses)

    def confuse(
        self, examples: Sequence[ExampleT], predictions: Sequence[PredictionT]
    ) -> tuple[list[str], NDArray[np.int64]] | None:
        """How often each label was taken for each, where there are labels."""
        return None

    def compares_examples(self) -> bool:
        """Whether a loss needs the whole batch at once, because its examples are compared with each other."""
        return False


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    normed: NDArray[np.float32] = shares / shares.sum(axis=-1, keepdims=True)
    return normed
