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
    files: Annotated[
        list[str],
        Parameter(help="Files of examples, whose answers are not looked at, or texts in quotation marks; - is a pipe."),
    ],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="A .jsonl or .csv file; by default JSON lines are printed.")
    ] = None,
    keep: Annotated[
        str, Parameter(help="Columns to keep beside the answers: text, or any of the file, label,date")
    ] = "",
    task: Annotated[
        TaskName | None, Parameter(help="embed compares vectors, pair reads pairs; else the model's own.")
    ] = None,
    columns: Columns | None = None,
    seq_len: Annotated[int | None, Parameter(help="Longest sequence; by default as trained, else all of it.")] = None,
    threshold: Annotated[
        float | None, Parameter(help="How much better no answer has to be than the best one; as trained by default.")
    ] = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
) -> None:
    """Answer every row of a file with a fine-tuned model, in their order, however many there are.

    A row without text has the answer null. The same command again goes on where an interrupted one stopped.
    """
    from malmoi.checkpoint.location import find_folder
    from malmoi.data.outputs import STANDARD_OUTPUT, refuse_inputs
    from malmoi.features.onnx_names import choose_engine
    from malmoi.tasks.quoted import are_texts

    if out == STANDARD_OUTPUT:
        out = None
    if out is not None and out.suffix not in ENDINGS:
        raise MalmoiError(f"--out {out}: name a file that ends in {' or '.join(ENDINGS)}.")
    folder = find_folder(model)
    choose_engine(folder)  # which says what is missing
    quoted = are_texts(files)
    if quoted:
        for word in files:
            if not any(map(str.isspace, word)):
                _tell(f"there is no file {word}; it is taken as a text")
    else:
        for path in files:
            Path(path).stat()
        if out is not None:
            refuse_inputs(out, files)
    kept = [name for name in keep.split(",") if name]
    from malmoi.tasks.predicting import ask_about_files, ask_about_texts, predict_rows
    from malmoi.tasks.use import open_task

    opened = open_task(folder, task, seq_len, device, threshold)
    if quoted:
        asking = ask_about_texts(opened, files, kept)
    else:
        asking = ask_about_files(opened, [Path(path) for path in files], columns or Columns(), kept)
    predict_rows(opened, asking, out, _tell)


def _tell(sentence: str) -> None:
    print(f"malmoi: {sentence}", file=sys.stderr)
