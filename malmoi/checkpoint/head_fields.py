"""The fields of config.json that say what a head for a task answers: labels, kind of problem, dropout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from malmoi.blocks.head import Head, Problem, Shape
from malmoi.errors import MalmoiError

# Where transformers keeps what only the task itself understands.
_TASK, _SETTINGS = "finetuning_task", "task_specific_params"
_LABELLED: set[Shape] = {"sequence", "tokens"}
_LARGEST = 1_000_000


def read_head(shape: Shape, content: Mapping[str, Any], where: Path) -> Head:
    """What a head of this shape answers, by config.json."""
    dropout, problem, task = content.get("classifier_dropout"), content.get("problem_type"), content.get(_TASK)
    settings = content.get(_SETTINGS)
    own = settings.get(task) if isinstance(settings, dict) and isinstance(task, str) else None
    if not isinstance(dropout, float | int | None) or (dropout is not None and not 0 <= dropout < 1):
        raise MalmoiError(f"{where}: classifier_dropout is {dropout!r}, but a share from 0 to 1 is needed.")
    if problem is not None and problem not in get_args(Problem):
        raise MalmoiError(f"{where}: problem_type is {problem!r}; malmoi knows {', '.join(get_args(Problem))}.")
    return Head(
        shape=shape,
        labels=_read_labels(content, where) if shape in _LABELLED else (),
        problem=problem,
        dropout=dropout,
        task=task if isinstance(task, str) else None,
        settings=own if isinstance(own, dict) else {},
    )


def write_head(head: Head) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if head.shape in _LABELLED:
        fields["id2label"] = {str(number): label for number, label in enumerate(head.labels)}
        fields["label2id"] = {label: number for number, label in enumerate(head.labels)}
    if head.problem is not None:
        fields["problem_type"] = head.problem
    if head.dropout is not None:
        fields["classifier_dropout"] = head.dropout
    if head.task is not None:
        fields |= {_TASK: head.task, _SETTINGS: {head.task: dict(head.settings)}}
    return fields


def _read_labels(content: Mapping[str, Any], where: Path) -> tuple[str, ...]:
    given = content.get("id2label")
    if given is None:
        count = content.get("num_labels", 2)
        if not isinstance(count, int) or not 1 <= count <= _LARGEST:
            raise MalmoiError(f"{where}: num_labels is {count!r}, but a whole number from 1 on is needed.")
        return tuple(f"LABEL_{number}" for number in range(count))
    try:
        labels = {int(number): str(label) for number, label in given.items()}
    except (AttributeError, ValueError):
        raise MalmoiError(f"{where}: id2label must name each label by its number.") from None
    if not labels or sorted(labels) != list(range(len(labels))):
        raise MalmoiError(f"{where}: id2label must number the labels 0, 1, 2 and so on.")
    return tuple(labels[number] for number in range(len(labels)))
