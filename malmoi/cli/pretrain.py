"""malmoi pretrain"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malmoi.objectives.options import ExampleOptions
from malmoi.ranks import is_first_rank
from malmoi.training.options import TrainingOptions


def pretrain(
    store: Annotated[Path, Parameter(help="A store made by malmoi prepare.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder of the run; the same command again goes on with it.")],
    model: Annotated[
        str,
        Parameter(help="A size such as bert-mini for fresh weights, or a folder or hub id (owner/name) to go on from."),
    ] = "bert-mini",
    examples: ExampleOptions | None = None,
    training: TrainingOptions | None = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
    threads: Annotated[int | None, Parameter(help="Processor threads to compute with; all by default.")] = None,
) -> None:
    """Train a model on a store from scratch, or go on with one. Under torchrun all ranks share the work."""
    from malmoi import runs

    print_result(
        runs.pretrain(store, out=out, model=model, examples=examples, training=training, device=device, threads=threads)
    )


def print_result(folder: Path) -> None:
    """Where a finished run has put what it made."""
    if is_first_rank():
        print(f"{folder}: the model; {folder.with_name('report.html')}: how it went")
