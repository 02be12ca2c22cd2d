"""The written record of a run: log.jsonl and TensorBoard events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole
from malmoi.training.events import EventFile
from malmoi.values import Step
from malmoi.writing import writing

_FIELDS = {field.name for field in fields(Step)}


class RunLog:
    """Appends a line a step. What an earlier run wrote beyond its last checkpoint is taken back first."""

    def __init__(self, out: Path, first_step: int, tell: Callable[[str], None]) -> None:
        path = out / "log.jsonl"
        records, lost = _read(path)
        if lost:
            tell(f"{path}: {lost:,} damaged lines are left out; the run itself does not need them.")
        kept = [record for record in records if record["step"] < first_step]
        write_whole(path, "".join(json.dumps(record) + "\n" for record in kept))
        self._path = path
        self._file = path.open("a", encoding="utf-8")
        with writing(out):
            self._events = EventFile(out, first_step)
        self._began = time.monotonic() - (kept[-1].get("elapsed", 0.0) if kept else 0.0)

    @property
    def elapsed(self) -> float:
        """Seconds that the run has taken so far, without those between two parts of it."""
        return time.monotonic() - self._began

    def write(self, step: Step, evaluation: dict[str, float] | None) -> None:
        record: dict[str, Any] = {**asdict(step), "elapsed": round(self.elapsed, 3)}
        if evaluation is not None:
            record["evaluation"] = evaluation
        if not math.isfinite(step.gradient_norm):
            record["gradient_norm"] = None  # an overflow in half precision; JSON has no infinity
        with writing(self._path):
            self._file.write(json.dumps(record, allow_nan=False) + "\n")
            self._file.flush()
        scalars = {"loss": step.loss, "learning_rate": step.learning_rate, "gradient_norm": step.gradient_norm}
        scalars |= {f"loss/{name}": value for name, value in step.parts.items()}
        scalars |= {f"accuracy/{name}": value for name, value in step.accuracy.items()}
        scalars |= {f"held_out/{name}": value for name, value in (evaluation or {}).items()}
        scalars["tokens_per_second"] = step.tokens / max(step.seconds, 1e-9)
        with writing(self._path.parent):
            self._events.write(step.step, scalars)

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        with writing(self._path):
            self._file.close()
        with writing(self._path.parent):
            self._events.close()


def read_log(out: Path) -> list[dict[str, Any]]:
    """All steps of a run that can still be read."""
    return _read(out / "log.jsonl")[0]


def _read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records of a log, and how many lines are none: a log is for people, and damage to it must not end a run."""
    records: list[dict[str, Any]] = []
    lost = 0
    if not path.exists():
        return records, lost
    # What follows the last line end was cut off by a kill.
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            record = json.loads(line, parse_constant=_refuse)
            if not (isinstance(record, dict) and record.keys() >= _FIELDS and isinstance(record["step"], int)):
                raise ValueError
            records.append(record)
        except ValueError:
            lost += 1
    return records, lost


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
