"""malmoi predict"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.tasks.columns import Columns, TaskName
from malmoi.tasks.writing import ENDINGS


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
    """Answer every example of a file with a fine-tuned model, in their order, however many there are.

    The same command again goes on where an interrupted one stopped.
    """
    from malmoi.checkpoint.location import find_folder
    from malmoi.features.onnx_names import choose_engine

    if out is not None and out.suffix not in ENDINGS:
        raise MalmoiError(f"--out {out}: name a file that ends in {' or '.join(ENDINGS)}.")
    folder = find_folder(model)
    choose_engine(folder)  # which says what is missing
    for path in files:
        path.stat()
    from malmoi.tasks.predicting import predict_files
    from malmoi.tasks.use import open_task

    count = predict_files(open_task(folder, task, seq_len, device), files, columns or Columns(), out)
    if out is not None:
        print(f"{out}: {count:,} predictions", file=sys.stderr)
