"""A fine-tuned model in use: the task it is for, opened from its folder, and its answers to single texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from malmoi.checkpoint.location import find_weights
from malmoi.errors import MalmoiError
from malmoi.features.onnx_names import choose_engine
from malmoi.tasks.columns import TASK_NAMES, TaskName
from malmoi.tasks.embedding import Contrast, Embedding
from malmoi.tasks.examples import Choice, Classified, Question, Scored
from malmoi.tasks.inference import predict
from malmoi.tasks.kind import Kind
from malmoi.tasks.kinds import Model, choose_kind, find_task, find_vector_len, open_kind, take_for
from malmoi.tasks.onnx_model import OnnxModel
from malmoi.tasks.predictions import Chosen, Classification, Reply, Similarity, Tagging
from malmoi.tasks.tagging import TagWords

if TYPE_CHECKING:
    import torch

    from malmoi.checkpoint.bundle import Bundle

_HEADED: tuple[TaskName, ...] = tuple(name for name in TASK_NAMES if name != "embed")
Text = str | tuple[str, str]


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

    def kind_for(self, examples: Sequence[Any]) -> Kind[Any, Any]:
        """The kind that fits these examples: vectors are judged by scores if there are any."""
        if self.task == "embed" and choose_kind("embed", examples, multi_label=False) is Contrast:
            assert isinstance(self.kind, Embedding)
            kind = Contrast(self.kind.tokenizer, None, self.kind.seq_len)
            kind.use_folder(self.kind.sentence)
            return kind
        return self.kind


def open_task(folder: Path, task: TaskName | None, seq_len: int | None, device: str | None) -> OpenedTask:
    """The model in a folder, for its own task, for another one of that shape, or for comparing vectors."""
    bundle, chosen = _open_model(folder, device)
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


def classify_texts(bundle: Model, texts: Sequence[Text]) -> list[Classification]:
    """The label of each text, or of each pair of texts."""
    examples = [
        Classified(text, None, None, "") if isinstance(text, str) else Classified(text[0], text[1], None, "")
        for text in texts
    ]
    return _answer(bundle, open_kind(bundle, ("classify", "pair")), examples)


def tag_texts(bundle: Model, texts: Sequence[str]) -> list[Tagging]:
    """The tags and entities of each text, with the characters where they stand."""
    kind = cast(TagWords, open_kind(bundle, ("tag",)))
    return _answer(bundle, kind, kind.take_texts(texts))


def answer_question(bundle: Model, question: str, context: str) -> Reply:
    """The piece of the context that answers the question."""
    example = Question("", question, context, None, False, "")
    [reply] = _answer(bundle, open_kind(bundle, ("answer",)), [example])
    return cast(Reply, reply)


def choose_continuation(bundle: Model, prompt: str, choices: Sequence[str]) -> Chosen:
    """The choice that goes best with the prompt."""
    if not choices:
        raise MalmoiError("There is nothing to choose from; give at least one choice.")
    [chosen] = _answer(bundle, open_kind(bundle, ("choose",)), [Choice(prompt, tuple(choices), None, "")])
    return cast(Chosen, chosen)


def compare_texts(bundle: Model, first: str, second: str) -> Similarity:
    """How alike two texts are: by the model's own head where it scores pairs, else by the cosine of their vectors."""
    scores = find_task(bundle.head) == "regress"
    kind = open_kind(bundle, ("regress",)) if scores else _embedding(bundle, None)
    [found] = _answer(bundle, kind, [Scored(first, second, None, "")])
    return Similarity(float(found.score))


def _embedding(bundle: Model, seq_len: int | None) -> Embedding:
    kind = Embedding(bundle.tokenizer, None, find_vector_len(bundle, seq_len))
    kind.use_folder(bundle.sentence)
    return kind


def _answer(bundle: Model, kind: Kind[Any, Any], examples: Sequence[Any]) -> list[Any]:
    return predict(kind, bundle.model, examples, None)
