"""The written record of a run: config.json, log.jsonl and TensorBoard events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole
from malmoi.errors import MalmoiError
from malmoi.training.events import EventFile
from malmoi.values import Step

# What may differ when a run goes on: checkpoints are whole, however the model is divided.
_FREE = {"malmoi", "training.shard"}


def take_up_config(out: Path, config: dict[str, Any]) -> None:
    """Note what the run is, or make sure that it is the run that was begun here."""
    path = out / "config.json"
    if not path.exists():
        others = [entry.name for entry in out.iterdir() if entry.name != "lock"]
        if others:
            raise MalmoiError(f"{out}: in use by something that is not a run ({min(others)}); choose another --out.")
        write_whole(path, json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        return
    try:
        begun = json.loads(path.read_text("utf-8"))
    except ValueError as mistake:
        raise MalmoiError(f"{path}: damaged ({mistake}); choose another --out.") from None
    wanted = json.loads(json.dumps(config))
    different = [f"{name} ({old}, not {new})" for name, old, new in _differences(begun, wanted) if name not in _FREE]
    if different:
        raise MalmoiError(
            f"{out}: the run begun here has another {', '.join(different)}; repeat its options to go on with it, or "
            "choose another --out."
        )


def _differences(first: Any, second: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from _differences(first.get(key), second.get(key), f"{name}.{key}" if name else key)
    elif first != second:
        yield name, first, second


class RunLog:
    """Appends a line a step. What an earlier run wrote beyond its last checkpoint is taken back first."""

    def __init__(self, out: Path, first_step: int) -> None:
        path = out / "log.jsonl"
        kept = [line for line in _lines(path) if json.loads(line)["step"] < first_step]
        write_whole(path, "".join(line + "\n" for line in kept))
        self._file = path.open("a", encoding="utf-8")
        self._events = EventFile(out, first_step)

    def write(self, step: Step, evaluation: dict[str, float] | None) -> None:
        record: dict[str, Any] = asdict(step)
        if evaluation is not None:
            record["evaluation"] = evaluation
        if not math.isfinite(step.gradient_norm):
            record["gradient_norm"] = None  # an overflow in half precision; JSON has no infinity
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        scalars = {"loss": step.loss, "learning_rate": step.learning_rate, "gradient_norm": step.gradient_norm}
        scalars |= {f"loss/{name}": value for name, value in step.parts.items()}
        scalars |= {f"accuracy/{name}": value for name, value in step.accuracy.items()}
        scalars |= {f"held_out/{name}": value for name, value in (evaluation or {}).items()}
        scalars["tokens_per_second"] = step.tokens / max(step.seconds, 1e-9)
        self._events.write(step.step, scalars)

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._events.close()


def read_log(out: Path) -> list[dict[str, Any]]:
    """All steps of a run."""
    return [json.loads(line) for line in _lines(out / "log.jsonl")]


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines = path.read_text("utf-8").split("\n")
    # What follows the last line end was cut off by a kill.
    return lines[:-1]
