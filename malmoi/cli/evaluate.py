"""malmoi evaluate"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malmoi.tasks.columns import Columns, TaskName


def evaluate(
    model: Annotated[str, Parameter(help="Folder of a fine-tuned model, or a hub id: owner/name.")],
    files: Annotated[list[Path], Parameter(help="Examples with the right answers.")],
    /,
    *,
    task: Annotated[
        TaskName | None, Parameter(help="embed judges vectors, pair reads pairs; else the model's own task.")
    ] = None,
    columns: Columns | None = None,
    seq_len: Annotated[int | None, Parameter(help="Longest sequence; by default as trained, else all of it.")] = None,
    threshold: Annotated[
        float | None, Parameter(help="How much better no answer has to be than the best one; as trained by default.")
    ] = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the figures as JSON.")] = False,
) -> None:
    """Judge a fine-tuned model by examples."""
    from malmoi.checkpoint.location import find_folder
    from malmoi.features.onnx_names import choose_engine

    folder = find_folder(model)
    choose_engine(folder)  # which says what is missing
    for path in files:
        path.stat()
    from malmoi.progress import progress
    from malmoi.tasks.inference import predict
    from malmoi.tasks.labelling import MultiLabelling
    from malmoi.tasks.reading import read_examples, require_known_labels
    from malmoi.tasks.use import open_task, tell_cut

    opened = open_task(folder, task, seq_len, device, threshold)
    if isinstance(opened.kind, MultiLabelling):
        columns = replace(columns or Columns(), multi_label=True)
    examples = list(read_examples(opened.task, files, columns, labelled=True))
    if opened.kind.head is not None:
        require_known_labels(examples, opened.kind.head.labels)
    kind = opened.kind_for(examples)
    count = len(examples)
    with progress("evaluating", count, "examples") as show:
        predictions = predict(
            kind, opened.bundle.model, examples, opened.device, show=lambda share: show(round(share * count))
        )
    if cut := tell_cut(opened.bundle, kind):
        print(f"malmoi: {cut}", file=sys.stderr)
    figures = kind.measure(examples, predictions) | kind.find_thresholds(examples, predictions)
    if json:
        import json as format

        print(format.dumps({"examples": count, **figures}))
        return
    lines = {"examples": f"{count:,}", **{name: f"{value:.4f}" for name, value in figures.items()}}
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name.replace('_', ' '):{width}}  {value}")
