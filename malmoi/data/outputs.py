"""One rule for all outputs: what is there is never overwritten in silence, and an output is none of the inputs.

Beside a file that was made stands OUT.json, which says from what: the same command again has nothing to do, and any
other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole
from malmoi.errors import MalmoiError

# How `-o -` reaches a command.
STANDARD_OUTPUT = Path("/dev/stdout")


def refuse_inputs(out: Path, inputs: Iterable[str | Path], *, may_lie_within: bool = False) -> None:
    """Stop where an output, or the note beside it, would replace an input or lie in a folder that is read."""
    written = {out.resolve(), _note_of(out).resolve()}
    for path in map(Path, inputs):
        if path.resolve() in written:
            raise MalmoiError(f"--out {out}: {path} is one of the inputs and would be lost; choose another name.")
        if not may_lie_within and path.is_dir() and path.resolve() in out.resolve().parents:
            raise MalmoiError(f"--out {out} lies in {path}, all of which is read; choose another place.")


def refuse_old_folder(out: Path, *, unless_it_holds: str | None = None) -> None:
    """Stop where a folder would be written into what is there already."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if unless_it_holds is None or not (out / unless_it_holds).is_file():
        raise MalmoiError(f"--out {out} exists already; name a new folder.")


def find_made(out: Path, recipe: Mapping[str, Any], *, can_repeat: bool) -> dict[str, Any] | None:
    """The note beside a file that was made by the same recipe before, None where there is nothing yet."""
    note = _read_note(_note_of(out))
    if not out.exists():
        if note is None and _note_of(out).exists():
            raise MalmoiError(f"{_note_of(out)} exists, and --out {out} writes a note there; choose another --out.")
        return None
    if note is not None and note["recipe"] == json.loads(json.dumps(recipe)) and can_repeat and out.is_file():
        return note
    how = " and was made from other text, options or model" if note is not None and can_repeat else " already"
    raise MalmoiError(f"{out} exists{how}; choose another --out or remove it.")


def note_made(out: Path, note: Mapping[str, Any]) -> None:
    """Say beside a file that is about to appear what it was made from: the note has a recipe among its facts."""
    write_whole(_note_of(out), json.dumps(note, indent=1) + "\n")


def _note_of(out: Path) -> Path:
    return out.with_name(out.name + ".json")


def _read_note(path: Path) -> dict[str, Any] | None:
    try:
        note = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and "recipe" in note else None
