"""malmoi finetune"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

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
) -> None:
    """Fine-tune a model on a task. Under torchrun all ranks share the work."""
    from malmoi.checkpoint.location import find_folder, find_weights
    from malmoi.progress import progress
    from malmoi.tasks.reading import read_examples

    columns, options = columns or Columns(), options or FinetuningOptions()
    # What is wrong with files and folders is said before torch is imported.
    folder = find_folder(model)
    find_weights(folder)
    examples = list(read_examples(task, files, columns, labelled=True))
    held_out = [] if dev is None else list(read_examples(task, [dev], columns, labelled=True))

    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.cli.pretrain import describe
    from malmoi.tasks.finetuning import finetune as run
    from malmoi.tasks.finetuning import prepare_finetuning
    from malmoi.training.distributed import join_world
    from malmoi.training.run import Interrupted

    with join_world(device) as world:

        def tell(sentence: str) -> None:
            if world.is_first:
                print(f"malmoi: {sentence}", file=sys.stderr, flush=True)

        prepared = prepare_finetuning(
            *(task, examples, held_out, load_bundle(folder), options, world),
            model_name=model,
            multi_label=columns.multi_label,
            tell=tell,
        )
        try:
            with progress("training", prepared.training.steps, "steps") as show:
                for one in run(prepared, out, world, tell=tell):
                    if world.is_first:
                        show(one.step.step + 1)
                        if one.evaluation is not None:
                            tell(describe(one))
        except Interrupted as stop:
            tell(f"stopped by signal {stop}; a checkpoint is saved, run the same command again to go on.")
            raise SystemExit(128 + int(str(stop))) from None
    if world.is_first:
        print(f"{out / 'model'}: the model; {out / 'report.html'}: how it went")
