"""Rows → predictions: a record for every row, in bounded memory, and continued where it was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from malmoi import __version__
from malmoi.checkpoint.location import identify_model
from malmoi.data.outputs import find_made
from malmoi.errors import MalmoiError
from malmoi.progress import progress
from malmoi.tasks.columns import Columns
from malmoi.tasks.examples import Asked
from malmoi.tasks.inference import predict_blocks
from malmoi.tasks.kind import Kind
from malmoi.tasks.quoted import ask_texts
from malmoi.tasks.reading import ReadingNotes, read_rows
from malmoi.tasks.use import OpenedTask
from malmoi.tasks.writing import PrintedRecords, Record, RecordFile, Records


@dataclass(frozen=True)
class Asking:
    """Rows to be answered, and all of what they are that decides the answers (`recipe`)."""

    rows: Iterable[Asked]
    keep: Sequence[str]
    recipe: dict[str, Any]
    files: ReadingNotes | None = None

    @property
    def can_repeat(self) -> bool:
        return self.files is None or self.files.can_repeat


def ask_about_files(opened: OpenedTask, paths: Sequence[Path], columns: Columns, keep: Sequence[str]) -> Asking:
    """Every row of some files; `keep` names columns that go into its record."""
    notes = ReadingNotes()
    rows = read_rows(opened.task, paths, columns, keep, notes=notes)
    recipe = {"columns": asdict(columns), "keep": list(keep), "files": notes.identify()}
    return Asking(rows, keep, recipe, notes)


def ask_about_texts(opened: OpenedTask, texts: Sequence[str], keep: Sequence[str]) -> Asking:
    """Texts that were quoted instead of files."""
    for name in keep:
        if name not in ("text", "id"):
            raise MalmoiError(f"--keep {name}: quoted texts have no columns; only text and id can be kept.")
    return Asking(ask_texts(opened.task, texts), keep, {"texts": list(texts), "keep": list(keep)})


def predict_rows(opened: OpenedTask, asking: Asking, out: Path | None, tell: Callable[[str], None]) -> None:
    """Answer all rows, in `out` or on standard output; `tell` is told what is to be known about it."""
    recipe = {
        "malmoi": __version__,
        "model": identify_model(opened.folder, opened.find_files()),
        "task": opened.task,
        "seq_len": opened.kind.seq_len,
        "settings": {} if opened.kind.head is None else dict(opened.kind.head.settings),
        **asking.recipe,
    }
    records: Records = PrintedRecords()
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        if find_made(out, recipe, can_repeat=asking.can_repeat) is not None:
            tell(f"{out}: it was made before, nothing to do")
            return
        records = RecordFile(out, recipe, can_resume=asking.can_repeat)
    with records:
        empty = _answer_rows(opened, asking, records)
    if empty:
        tell(f"{empty:,} of {records.count:,} rows have no text; their answers are null.")
    if cut := opened.describe_cut():
        tell(cut)
    if out is not None:
        tell(f"{out}: {records.count:,} predictions")


def _answer_rows(opened: OpenedTask, asking: Asking, records: Records) -> int:
    """Returns how many rows had no text."""
    empty = 0
    notes = asking.files
    description = "going on predicting" if records.count else "predicting"
    with nullcontext() if notes is None else progress(description, notes.total_bytes, "B") as show:
        # Blocks begin where those of the interrupted run did, so every row is answered among the same ones.
        rest = islice(asking.rows, records.count, None)
        try:
            for block in predict_blocks(opened.kind, opened.bundle.model, rest, opened.device):
                records.append([_to_record(opened.kind, row, answer, asking.keep) for row, answer in block])
                empty += sum(row.example is None for row, _ in block)
                if show is not None and notes is not None:
                    show(notes.bytes_read)
        except MalmoiError:
            # A row at fault: once mended it is another file, so what was made of this one is of no use.
            records.discard()
            raise
    return empty


def _to_record(kind: Kind[Any, Any], row: Asked, answer: Any, keep: Sequence[str]) -> Record:
    """The id of a row, what is kept of it, and the answer; a column that is called like a part of it is renamed."""
    kept = {f"given_{name}" if name in kind.fields else name: row.kept[name] for name in keep if name != "id"}
    found = dict.fromkeys(kind.fields) if row.example is None else kind.to_record(row.example, answer)
    return {"id": row.id, **kept, **found}
