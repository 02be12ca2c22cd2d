"""config.json of a run: what was asked for, by which the same command finds its run again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole
from malmoi.errors import MalmoiError

_CONFIG = "config.json"
# Not of the user's making: the lock, and what a kill leaves of a file that was being written.
_OWN = {"lock", f"{_CONFIG}.partial"}
# Options stand in the configuration under these names; everything else in it is said in its own words.
_OPTIONS = {"training", "examples", "options"}
_WORDS = {
    "store": "another store",
    "data": "other examples",
    "dev": "other examples held out (--dev)",
    "architecture": "another model",
    "weights": "other weights in its --model",
    "labels": "other labels",
}


class RunConfig:
    """The configuration of the run in a folder. `course` is how many steps it has, see course.py."""

    def __init__(self, out: Path) -> None:
        self._path = out / _CONFIG
        self.content: dict[str, Any] = {}

    def take_up(self, wanted: dict[str, Any], free: Collection[str]) -> None:
        """Note what the run is, or make sure that it is the one begun here, but for what is `free` to differ."""
        wanted = json.loads(json.dumps(wanted))
        begun = self._read()
        if begun is not None:
            self._require_same(begun, wanted, {"malmoi", "course", *free})
            if "course" in begun:
                wanted["course"] = begun["course"]
        self.content = wanted
        self.write()

    @property
    def turns(self) -> list[tuple[int, int]]:
        """How many steps the run was to have, from which step on; empty where that is not decided yet."""
        return [(int(begin), int(total)) for begin, total in self.content.get("course", {}).get("turns", [])]

    @property
    def planned_minutes(self) -> float | None:
        """The --minutes that the steps were counted for."""
        minutes: float | None = self.content.get("course", {}).get("minutes")
        return minutes

    def note_course(self, turns: list[tuple[int, int]], minutes: float | None) -> None:
        self.content["course"] = {"minutes": minutes, "turns": turns}
        self.write()

    def read(self) -> None:
        """What the first rank has written."""
        self.content = self._read() or {}

    def write(self) -> None:
        write_whole(self._path, json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")

    def _read(self) -> dict[str, Any] | None:
        if not self._path.exists():
            others = [entry.name for entry in self._path.parent.iterdir() if entry.name not in _OWN]
            if others:
                raise MalmoiError(
                    f"{self._path.parent}: in use by something that is not a run ({min(others)}); choose another --out."
                )
            return None
        try:
            content = json.loads(self._path.read_text("utf-8"))
            if not isinstance(content, dict):
                raise ValueError("it holds no object")
            return content
        except ValueError as mistake:
            raise MalmoiError(f"{self._path}: damaged ({mistake}); choose another --out.") from None

    def _require_same(self, begun: dict[str, Any], wanted: dict[str, Any], free: Collection[str]) -> None:
        different = [(name, old, new) for name, old, new in _differences(begun, wanted) if name not in free]
        if different:
            said = dict.fromkeys(_describe(*one) for one in different)  # each once
            raise MalmoiError(
                f"{self._path.parent}: the run begun here has {', '.join(said)}; repeat its command to go on with it, "
                "or choose another --out."
            )


def _differences(first: Any, second: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from _differences(first.get(key), second.get(key), f"{name}.{key}" if name else key)
    elif first != second:
        yield name, first, second


def _describe(name: str, old: Any, new: Any) -> str:
    """A difference in the words of the command line."""
    section, _, field = name.partition(".")
    if section in _OPTIONS and field:
        return f"--{field.replace('_', '-')} {old}, not {new}"
    if section in _WORDS:
        return _WORDS[section]
    return f"--{name.replace('_', '-')} {old}, not {new}"
