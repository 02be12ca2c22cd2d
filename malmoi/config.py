"""Configurations: flat dataclasses ⇄ JSON objects, every value checked against the type of its field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from malmoi.errors import MalmoiError

T = TypeVar("T")

# The labels of a hundred thousand classes take half of it. Parsing takes many times the room of the file.
_LARGEST_FILE = 10_000_000


def read_dataclass(cls: type[T], mapping: Mapping[str, object], where: str | Path) -> tuple[T, dict[str, object]]:
    """Make a `cls` from the keys that are its fields. The other keys are returned: what they mean, the caller knows.

    `where` names the place the mapping came from, for the sentence about a value that does not fit.
    """
    kinds = get_type_hints(cls)
    known: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name in mapping:
            value, kind = mapping[field.name], kinds[field.name]
            if not _fits(value, kind):
                raise MalmoiError(f"{where}: {field.name} is {_show(value)}, but {_name(kind)} is needed.")
            known[field.name] = value
        elif field.default is MISSING and field.default_factory is MISSING:
            raise MalmoiError(f"{where}: {field.name} is missing.")
    try:
        made = cls(**known)
    except MalmoiError as mistake:
        raise MalmoiError(f"{where}: {mistake}") from None
    return made, {name: value for name, value in mapping.items() if name not in known}


def require_numbers(config: object, names: Iterable[str], least: int, below: float = math.inf) -> None:
    """Refuse a configuration in which one of the fields `names` is less than `least`, not below `below`, or NaN."""
    for name in names:
        value = getattr(config, name)
        if not least <= value < below:
            needed = f"at least {least}" if below == math.inf else f"a number from {least} to below {below}"
            raise MalmoiError(f"{name} {value}: {needed} is needed.")


def to_json(config: Any) -> dict[str, Any]:
    """The fields of a dataclass as a JSON object."""
    return asdict(config)


def read_object(path: Path) -> dict[str, Any]:
    """The one JSON object that a file holds."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise MalmoiError(
                f"{path} takes {path.stat().st_size:,} bytes; settings take less than {_LARGEST_FILE:,}, and it is not "
                "read."
            )
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise MalmoiError(f"{path} is missing.") from None
    except json.JSONDecodeError as mistake:
        raise MalmoiError(f"{path}, line {mistake.lineno}: this is no valid JSON ({mistake.msg}).") from None
    except (ValueError, RecursionError):  # bytes that are not UTF-8, numbers of thousands of digits, endless nesting
        raise MalmoiError(f"{path} is no JSON file of a sensible form.") from None
    if not isinstance(content, dict):
        raise MalmoiError(f"{path} must hold one JSON object.")
    return content


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(kind))
    if get_origin(kind) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(item, get_args(kind)[0]) for item in value)
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and _is_finite(value)
    return isinstance(value, kind)


def _is_finite(value: float) -> bool:
    """JSON has whole numbers of any length where a fraction may stand, and Python reads NaN and Infinity."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _name(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_name(choice) for choice in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(json.dumps(choice) for choice in get_args(kind))
    if get_origin(kind) is list:
        return f"a list, each item {_name(get_args(kind)[0])},"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", NoneType: "null"}
    return names.get(kind, str(kind))


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"
