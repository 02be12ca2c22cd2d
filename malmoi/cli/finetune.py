"""malmoi finetune"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malmoi.cli.pretrain import print_result
from malmoi.tasks.columns import Columns, TaskName
from malmoi.tasks.options import FinetuningOptions


def finetune(
    task: Annotated[TaskName, Parameter(help="What the model is to learn.")],
    files: Annotated[list[Path], Parameter(help="Examples to learn from: csv, tsv, jsonl, parquet, CoNLL, SQuAD.")],
    /,
    *,
    model: Annotated[str, Parameter(help="Folder of a model, or a hub id: owner/name.")],
    out: Annotated[Path, Parameter(help="Folder of the run; the same command again goes on with it.")],
    dev: Annotated[Path | None, Parameter(help="Examples to judge by; the best model on them is kept.")] = None,
    columns: Columns | None = None,
    options: FinetuningOptions | None = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
    threads: Annotated[int | None, Parameter(help="Processor threads to compute with; all by default.")] = None,
) -> None:
    """Fine-tune a model on a task. Under torchrun all ranks share the work."""
    from malmoi import runs

    print_result(
        runs.finetune(
            task,
            files,
            model=model,
            out=out,
            dev=dev,
            columns=columns,
            options=options,
            device=device,
            threads=threads,
        )
    )
