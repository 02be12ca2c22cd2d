"""Files of examples → predictions: in bounded memory, and continued where it was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from malmoi import __version__
from malmoi.checkpoint.location import identify_model
from malmoi.errors import MalmoiError
from malmoi.progress import progress
from malmoi.tasks.columns import Columns
from malmoi.tasks.inference import predict_blocks
from malmoi.tasks.reading import ReadingNotes, read_examples
from malmoi.tasks.use import OpenedTask
from malmoi.tasks.writing import PrintedRecords, RecordFile, Records
from malmoi.text.files import Files


def predict_files(opened: OpenedTask, paths: Sequence[Path], columns: Columns, out: Path | None) -> int:
    """Answer every example of some files, in `out` or on standard output; returns how many there are."""
    notes = ReadingNotes()
    examples = read_examples(opened.task, paths, columns, labelled=False, notes=notes)
    assert notes.source is not None
    with _open_records(opened, columns, notes.source, out) as records:
        description = "going on predicting" if records.count else "predicting"
        with progress(description, notes.source.total_bytes, "B") as show:
            # Blocks begin where those of the interrupted run did, so every example is answered among the same ones.
            rest = islice(examples, records.count, None)
            try:
                for block in predict_blocks(opened.kind, opened.bundle.model, rest, opened.device):
                    records.append([opened.kind.to_record(example, answer) for example, answer in block])
                    show(notes.source.bytes_read)
            except MalmoiError:
                # An example at fault: once mended it is another file, so what was made of this one is of no use.
                records.discard()
                raise
        return records.count


def _open_records(opened: OpenedTask, columns: Columns, source: Files, out: Path | None) -> Records:
    if out is None:
        return PrintedRecords()
    recipe = {
        "malmoi": __version__,
        "model": identify_model(opened.folder, opened.find_files()),
        "task": opened.task,
        "seq_len": opened.kind.seq_len,
        "columns": asdict(columns),
        "files": [one.identify() for one in source.sources],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    return RecordFile(out, recipe, can_resume=source.total_bytes is not None)
