"""A fine-tuned model in use: the task it is for, opened from its folder, and its answers to single texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from malmoi.checkpoint.location import find_weights
from malmoi.errors import MalmoiError
from malmoi.features.onnx_names import choose_engine
from malmoi.tasks.answering import take_threshold
from malmoi.tasks.columns import TASK_NAMES, TaskName
from malmoi.tasks.embedding import Contrast, Embedding
from malmoi.tasks.examples import Choice, Classified, Question, Scored
from malmoi.tasks.inference import predict
from malmoi.tasks.kind import Kind
from malmoi.tasks.kinds import Model, choose_kind, find_task, find_vector_len, open_kind, take_for
from malmoi.tasks.lengths import describe_cut
from malmoi.tasks.onnx_model import OnnxModel
from malmoi.tasks.predictions import Chosen, Classification, Reply, Similarity, Tagging
from malmoi.tasks.tagging import TagWords
from malmoi.text.given import Text, check_text, take_several, take_texts, take_texts_or_pairs

if TYPE_CHECKING:
    import torch

    from malmoi.checkpoint.bundle import Bundle

_HEADED: tuple[TaskName, ...] = tuple(name for name in TASK_NAMES if name != "embed")


@dataclass(frozen=True)
class OpenedTask:
    """A model and what it is for."""

    folder: Path
    task: TaskName
    kind: Kind[Any, Any]
    bundle: Bundle | OnnxModel
    device: torch.device | None  # None where ONNX Runtime computes

    def find_files(self) -> list[Path]:
        """Where the weights lie."""
        return [self.bundle.model.path] if isinstance(self.bundle, OnnxModel) else find_weights(self.folder)

    def describe_cut(self) -> str | None:
        return tell_cut(self.bundle, self.kind)

    def kind_for(self, examples: Sequence[Any]) -> Kind[Any, Any]:
        """The kind that fits these examples: vectors are judged by scores if there are any."""
        if self.task == "embed" and choose_kind("embed", examples, multi_label=False) is Contrast:
            assert isinstance(self.kind, Embedding)
            kind = Contrast(self.kind.tokenizer, None, self.kind.seq_len)
            kind.use_folder(self.kind.sentence)
            return kind
        return self.kind


def open_task(
    folder: Path, task: TaskName | None, seq_len: int | None, device: str | None, threshold: float | None = None
) -> OpenedTask:
    """The model in a folder, for its own task, for another one of that shape, or for comparing vectors."""
    bundle, chosen = _open_model(folder, device)
    bundle.head = take_threshold(bundle.head, threshold)
    if task == "embed":
        return OpenedTask(folder, "embed", _embedding(bundle, seq_len), bundle, chosen)
    if bundle.head is not None and task is not None:
        bundle.head = take_for(bundle.head, task)
    own = find_task(bundle.head)
    if own is None or "task_head" in bundle.absent:
        raise MalmoiError(
            f"{folder}: the model has no head for a task; make one with malmoi finetune, or compare vectors with "
            "--task embed."
        )
    return OpenedTask(folder, own, open_kind(bundle, _HEADED, seq_len), bundle, chosen)


def _open_model(folder: Path, device: str | None) -> tuple[Bundle | OnnxModel, torch.device | None]:
    if choose_engine(folder) == "onnx":
        if device not in (None, "cpu"):
            raise MalmoiError(f"--device {device}: {folder} holds an ONNX model, which runs on the processor.")
        return OnnxModel(folder), None
    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.training.distributed import choose_device
    from malmoi.training.memory import keep_buffers

    keep_buffers()
    bundle, chosen = load_bundle(folder), choose_device(device)
    bundle.model.to(chosen)
    return bundle, chosen


def classify_texts(bundle: Model, texts: str | Iterable[Text]) -> Classification | list[Classification]:
    """The label of each text, or of each pair of texts; of a single text its own."""
    kind = open_kind(bundle, ("classify", "pair"))
    given, is_single = take_texts_or_pairs(texts)
    answers = _answer(bundle, kind, [Classified(*_take_apart(text), None, "") for text in given])
    return cast(Classification, answers[0]) if is_single else answers


def score_texts(bundle: Model, texts: str | Iterable[Text]) -> float | list[float]:
    """The number a model gives each text, or each pair of texts; of a single text its own."""
    kind = open_kind(bundle, ("regress",))
    given, is_single = take_texts_or_pairs(texts)
    scores = [one.score for one in _answer(bundle, kind, [Scored(*_take_apart(text), None, "") for text in given])]
    return cast(float, scores[0]) if is_single else scores


def tag_texts(bundle: Model, texts: str | Iterable[str]) -> Tagging | list[Tagging]:
    """The tags and entities of each text, with the characters where they stand; of a single text its own."""
    kind = cast(TagWords, open_kind(bundle, ("tag",)))
    given, is_single = take_texts(texts)
    answers = _answer(bundle, kind, kind.take_texts(given))
    return cast(Tagging, answers[0]) if is_single else answers


def answer_question(bundle: Model, question: str, context: str, threshold: float | None = None) -> Reply:
    """The piece of the context that answers the question."""
    kind = open_kind(bundle, ("answer",))
    kind.head = take_threshold(kind.head, threshold)
    example = Question("", check_text(question, "the question"), check_text(context, "the context"), None, False, "")
    [reply] = _answer(bundle, kind, [example])
    return cast(Reply, reply)


def choose_continuation(bundle: Model, prompt: str, choices: Iterable[str]) -> Chosen:
    """The choice that goes best with the prompt."""
    kind = open_kind(bundle, ("choose",))
    given = take_several(choices, "a list of choices is needed")
    if not given:
        raise MalmoiError("There is nothing to choose from; give at least one choice.")
    ways = tuple(check_text(choice, f"choice {number}") for number, choice in enumerate(given))
    [chosen] = _answer(bundle, kind, [Choice(check_text(prompt, "the prompt"), ways, None, "")])
    return cast(Chosen, chosen)


def compare_texts(bundle: Model, first: str, second: str | Iterable[str]) -> Similarity | list[Similarity]:
    """How alike a text is to another, or to each of several: by the model's own head where it scores pairs, else by the
    cosine of their vectors."""
    scores = find_task(bundle.head) == "regress"
    kind = open_kind(bundle, ("regress",)) if scores else _embedding(bundle, None)
    others, is_single = take_texts(second)
    first = check_text(first, "the first text")
    found = _answer(bundle, kind, [Scored(first, other, None, "") for other in others])
    likenesses = [Similarity(float(one.score)) for one in found]
    return likenesses[0] if is_single else likenesses


def _take_apart(text: Text) -> tuple[str, str | None]:
    return (text, None) if isinstance(text, str) else text


def _embedding(bundle: Model, seq_len: int | None) -> Embedding:
    kind = Embedding(bundle.tokenizer, None, find_vector_len(bundle, seq_len))
    kind.use_folder(bundle.sentence)
    return kind


def _answer(bundle: Model, kind: Kind[Any, Any], examples: Sequence[Any]) -> list[Any]:
    answers = predict(kind, bundle.model, examples, None)
    if cut := tell_cut(bundle, kind):
        warnings.warn(cut.partition("; --seq-len")[0] + ".", stacklevel=4)
    return answers


def tell_cut(bundle: Model, kind: Kind[Any, Any]) -> str | None:
    """What of all that a kind has encoded was cut, in a sentence; None where nothing was."""
    return describe_cut(kind.lengths, kind.seq_len, bundle.max_positions)
