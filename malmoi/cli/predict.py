"""malmoi predict"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.tasks.columns import Columns, TaskName


def predict(
    model: Annotated[str, Parameter(help="Folder of a fine-tuned model, or a hub id: owner/name.")],
    files: Annotated[list[Path], Parameter(help="Examples without answers; answers that are there are not looked at.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="A .jsonl or .csv file; by default JSON lines are printed.")
    ] = None,
    task: Annotated[
        TaskName | None, Parameter(help="embed compares vectors, pair reads pairs; else the model's own.")
    ] = None,
    columns: Columns | None = None,
    seq_len: Annotated[int | None, Parameter(help="Longest sequence; as trained by default.")] = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
) -> None:
    """Answer every example of a file with a fine-tuned model, in their order, however many there are."""
    from malmoi.checkpoint.location import find_folder, find_weights

    if out is not None and out.suffix not in (".jsonl", ".csv"):
        raise MalmoiError(f"--out {out}: name a file that ends in .jsonl or .csv.")
    folder = find_folder(model)
    find_weights(folder)
    for path in files:
        path.stat()
    from malmoi.progress import progress
    from malmoi.tasks.inference import predict_stream
    from malmoi.tasks.reading import ReadingNotes, read_examples
    from malmoi.tasks.use import open_task
    from malmoi.tasks.writing import open_records

    opened = open_task(folder, task, seq_len, device)
    notes = ReadingNotes()
    examples = read_examples(opened.task, files, columns, labelled=False, notes=notes)
    source = notes.source
    assert source is not None
    count = 0
    with open_records(out) as write, progress("predicting", source.total_bytes, "B") as show:
        for example, prediction in predict_stream(opened.kind, opened.bundle.model, examples, opened.device):
            write(opened.kind.to_record(example, prediction))
            count += 1
            show(source.bytes_read)
    if out is not None:
        print(f"{out}: {count:,} predictions", file=sys.stderr)
