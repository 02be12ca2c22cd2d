"""Predictions as lines of JSON or as a table: printed as they come, or in a file that is there entirely or not at all.

While a file grows, `OUT.partial` is a folder (data/growing.py) with what was answered so far. `OUT.json` beside the
finished one says what it was made from (data/outputs.py).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from malmoi.data.folders import publish_file
from malmoi.data.growing import GrowingFolder
from malmoi.data.outputs import note_made

Record = dict[str, Any]
ENDINGS = (".jsonl", ".csv")
_RECORDS = "records"


class PrintedRecords:
    """Lines of JSON on standard output, a block at a time. `count` says how many there are."""

    count = 0

    def append(self, records: Sequence[Record]) -> None:
        print(_to_lines(records), end="", flush=True)
        self.count += len(records)

    def discard(self) -> None:
        """What is printed is printed."""

    def __enter__(self) -> PrintedRecords:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class RecordFile:
    """A .jsonl or .csv file. Opened again after an interruption, it holds the blocks that were appended before."""

    def __init__(self, out: Path, recipe: Mapping[str, Any], *, can_resume: bool) -> None:
        self._out = out
        partial = out.with_name(out.name + ".partial")
        self._recipe = recipe
        made = {**recipe, "ending": out.suffix}
        self._files = GrowingFolder(partial, (_RECORDS,), made, can_resume=can_resume)

    def __enter__(self) -> RecordFile:
        self._files.__enter__()
        self.count = (self._files.facts or {}).get("count", 0)
        return self

    def append(self, records: Sequence[Record]) -> None:
        text = _to_rows(records, header=not self.count) if self._out.suffix == ".csv" else _to_lines(records)
        self._files.append(_RECORDS, text.encode())
        self.count += len(records)
        self._files.note({"count": self.count})

    def discard(self) -> None:
        self._files.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._publish()
        except OSError as failure:
            self._files.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._files.__exit__(kind, error, trace)

    def _publish(self) -> None:
        self._files.close()
        note_made(self._out, {"recipe": self._recipe, "count": self.count})
        publish_file(self._files.folder / _RECORDS, self._out)
        self._files.discard()


Records = PrintedRecords | RecordFile


def _to_lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _to_rows(records: Sequence[Record], *, header: bool) -> str:
    """Rows under the names of the first record; what is not a plain value stands as JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
