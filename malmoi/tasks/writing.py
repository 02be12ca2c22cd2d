"""Predictions as lines of JSON or as a table, written as they come; a file is there entirely or not at all."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

Record = dict[str, Any]


@contextmanager
def open_records(out: Path | None) -> Iterator[Callable[[Record], None]]:
    """Yield `write(record)`, for a .jsonl or .csv file, or for standard output."""
    if out is None:
        yield lambda record: _write_line(sys.stdout, record)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            yield _Table(file).write if out.suffix == ".csv" else lambda record: _write_line(file, record)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def _write_line(file: TextIO, record: Record) -> None:
    file.write(json.dumps(record, ensure_ascii=False) + "\n")


class _Table:
    """Rows under the names of the first one; what is not a plain value stands as JSON."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._writer: csv.DictWriter[str] | None = None

    def write(self, record: Record) -> None:
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(record), lineterminator="\n")
            self._writer.writeheader()
        self._writer.writerow({name: _cell(value) for name, value in record.items()})


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
