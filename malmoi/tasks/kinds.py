"""The tasks at a glance: what each name means for a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from malmoi.blocks.head import Head, Shape
from malmoi.checkpoint.sentence_modules import SentenceModules, find_length
from malmoi.errors import MalmoiError
from malmoi.tasks.answering import Answering
from malmoi.tasks.choosing import Choosing
from malmoi.tasks.columns import TaskName
from malmoi.tasks.embedding import Contrast, Embedding
from malmoi.tasks.entities import find_scheme
from malmoi.tasks.kind import Kind
from malmoi.tasks.labelling import Labelling, MultiLabelling
from malmoi.tasks.scoring import Scoring
from malmoi.tasks.tagging import TagClasses, TagWords
from malmoi.text.tokenizer import Tokenizer

_KINDS: dict[TaskName, type[Kind[Any, Any]]] = {
    "classify": Labelling,
    "pair": Labelling,
    "regress": Scoring,
    "tag": TagWords,
    "answer": Answering,
    "choose": Choosing,
    "embed": Embedding,
}
# What a head of each shape can be for; the first is what one is for whose folder does not say.
_USES: dict[Shape, tuple[TaskName, ...]] = {
    "sequence": ("classify", "pair", "regress"),
    "tokens": ("tag",),
    "span": ("answer",),
    "choice": ("choose",),
}


class Model(Protocol):
    """What a task asks of a model, whether torch computes it or ONNX Runtime."""

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def sentence(self) -> SentenceModules | None: ...
    @property
    def head(self) -> Head | None: ...
    @property
    def absent(self) -> frozenset[str]: ...
    @property
    def max_positions(self) -> int: ...


def choose_kind(task: TaskName, examples: Sequence[Any], *, multi_label: bool) -> type[Kind[Any, Any]]:
    """The kind of task that these examples are for."""
    if task in ("classify", "pair") and multi_label:
        return MultiLabelling
    if task == "tag":
        return _choose_tags({tag for one in examples for tag in one.tags or ()})
    if task == "embed" and all(one.score is None for one in examples):
        return Contrast
    return _KINDS[task]


def _choose_tags(tags: Iterable[str]) -> type[TagWords]:
    return TagClasses if find_scheme(tags) == "classes" else TagWords


def find_task(head: Head | None) -> TaskName | None:
    """What a model is for."""
    if head is None:
        return None
    named = next((name for name in _USES[head.shape] if name == head.task), None)
    if named is None and head.shape == "sequence" and (head.problem == "regression" or len(head.labels) == 1):
        return "regress"
    return named or _USES[head.shape][0]


def take_for(head: Head, task: TaskName) -> Head:
    """The same head, used for another task of its shape: pairs instead of single texts."""
    if task not in _USES[head.shape]:
        raise MalmoiError(f"--task {task}: the model has a head for {' or '.join(_USES[head.shape])}.")
    return replace(head, task=task)


def open_kind(bundle: Model, tasks: Sequence[TaskName], seq_len: int | None = None) -> Kind[Any, Any]:
    """The task that a model was fine-tuned for, if it is one of those wanted."""
    task = find_task(bundle.head)
    head = bundle.head
    if head is None or task is None or task not in tasks or "task_head" in bundle.absent:
        has = "no head for a task" if head is None or "task_head" in bundle.absent else f"one for {task}"
        raise MalmoiError(
            f"The model has no head for {' or '.join(tasks)} ({has}); make one with: malmoi finetune {tasks[0]}."
        )
    kind = _KINDS[task]
    if task == "tag":
        kind = _choose_tags(head.labels)
    elif head.problem == "multi_label_classification":
        kind = MultiLabelling
    return kind(bundle.tokenizer, head, find_seq_len(bundle, task, seq_len))


def find_vector_len(bundle: Model, asked: int | None) -> int:
    """The longest text to make a vector of: as asked, or as everywhere else."""
    limit = bundle.max_positions
    return find_length(bundle.sentence, limit) if asked is None else find_seq_len(bundle, "embed", asked)


def find_seq_len(bundle: Model, task: TaskName, asked: int | None) -> int:
    """The longest sequence: as asked, as it was trained with for this task (another one's says nothing for it), or all
    that the model has positions for; windows have their usual length."""
    limit = bundle.max_positions
    if asked is not None and asked > limit:
        raise MalmoiError(f"--seq-len {asked}: the model has {limit} positions; choose at most that many.")
    own = bundle.head if find_task(bundle.head) == task else None
    trained = None if own is None else own.settings.get("seq_len")
    kind = _KINDS[task]
    usual = kind.default_seq_len if kind.reads_windows else limit
    return asked or min(limit, trained if isinstance(trained, int) else usual)
