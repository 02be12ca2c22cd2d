"""A whole run in one call, with its progress on standard error: pre-training on a store, fine-tuning on files.

The same call again goes on with an interrupted run and has nothing to do where one is finished. Under torchrun all
ranks share the work, and the first one speaks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.checkpoint.location import find_folder, find_weights
from malmoi.data.store import Store
from malmoi.objectives.options import ExampleOptions
from malmoi.progress import progress
from malmoi.tasks.columns import Columns, TaskName
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.reading import read_examples
from malmoi.training.options import TrainingOptions

if TYPE_CHECKING:
    from malmoi.checkpoint.bundle import Bundle
    from malmoi.training.distributed import World
    from malmoi.training.run import Progress

# torch is imported within the functions, so that what is wrong with files and folders is said at once.


def pretrain(
    store: str | Path,
    *,
    out: str | Path,
    model: str | Path = "bert-mini",
    examples: ExampleOptions | None = None,
    training: TrainingOptions | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Path:
    """Train a preset from scratch, or go on with a model (a folder, or a hub id); return the folder of the result."""
    opened, out = Store(Path(store)), Path(out)
    examples, training = examples or ExampleOptions(), training or TrainingOptions()

    from malmoi.training.distributed import join_world
    from malmoi.training.pretraining import pretrain as run

    with join_world(device, threads) as world:
        tell = _teller(world)
        bundle = _open_model(str(model), opened, out, examples.seed, tell)
        steps = run(opened, bundle, out, examples, training, world, model_name=str(model), tell=tell)
        _follow(steps, out, world, tell)
    return out / "model"


def finetune(
    task: TaskName,
    files: Sequence[str | Path],
    *,
    model: str | Path,
    out: str | Path,
    dev: str | Path | None = None,
    columns: Columns | None = None,
    options: FinetuningOptions | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Path:
    """Fine-tune a model (a folder, or a hub id) on files of examples; return the folder of the result.

    Of the examples in `dev` nothing is learned: the model that does best on them is kept.
    """
    columns, options, out = columns or Columns(), options or FinetuningOptions(), Path(out)
    folder = find_folder(model)
    find_weights(folder)
    learned = list(read_examples(task, files, columns, labelled=True))
    held_out = [] if dev is None else list(read_examples(task, [dev], columns, labelled=True))

    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.tasks.finetuning import TaskData, prepare_finetuning
    from malmoi.tasks.finetuning import finetune as run
    from malmoi.training.distributed import join_world

    with join_world(device, threads) as world:
        tell = _teller(world)
        data = TaskData(task, learned, held_out, columns.multi_label)
        bundle = load_bundle(folder)
        prepared = prepare_finetuning(data, bundle, options, world, model_name=str(model), tell=tell)
        _follow(run(prepared, out, world, tell=tell), out, world, tell)
    return out / "model"


def _open_model(model: str, store: Store, out: Path, seed: int, tell: Callable[[str], None]) -> Bundle:
    """A preset for the store's tokenizer, or a folder or hub id to go on from, grown if the tokenizer has."""
    from malmoi.catalog import SYSTEMS
    from malmoi.checkpoint.bundle import create_bundle, load_bundle
    from malmoi.checkpoint.growth import grow_vocabulary

    if not Path(model).exists() and "/" not in model:
        bundle = create_bundle(model, store.tokenizer, seed=seed)
        bundle.absent = frozenset(SYSTEMS[bundle.system].heads)  # until an objective has trained them
        # A run that goes on has weights of its own.
        if not any(out.glob("checkpoints/step-*")):
            tell(f"{model}: fresh weights, {_count_parameters(bundle)} parameters.")
        return bundle
    bundle = load_bundle(model)
    if bundle.head is not None:
        bundle.change_head(None, seed)
    if bundle.tokenizer.fingerprint != store.tokenizer.fingerprint:
        added = grow_vocabulary(bundle, store.tokenizer)
        tell(f"{model}: its vocabulary grows by {added:,} pieces to {bundle.config.vocab_size:,}.")
    return bundle


def _count_parameters(bundle: Bundle) -> str:
    """A number as it stands in tables of models: 11.2M."""
    count = sum(weight.numel() for weight in bundle.model.parameters())
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count:,}"


def _follow(steps: Iterator[Progress], out: Path, world: World, tell: Callable[[str], None]) -> None:
    from malmoi.training.run import Interrupted
    from malmoi.training.state import list_checkpoints

    try:
        with progress("training", None, "steps") as show:
            for one in steps:
                if world.is_first:
                    show(one.step.step + 1, one.total)
                    if one.evaluation is not None:
                        tell(_describe(one))
    except Interrupted as stop:
        done = f"step {stop.ending.steps:,} of {stop.ending.total:,}"
        tell(
            f"stopped by signal {stop} after {done}; {out / 'model'} holds the model as it is. Run the same command "
            "again to go on."
        )
        raise SystemExit(128 + stop.ending.signal) from None
    except KeyboardInterrupt as stop:  # the second, usually: the first is obeyed when the step is done
        checkpoints = list_checkpoints(out / "checkpoints")
        if checkpoints:
            stop.add_note(f"{checkpoints[-1]} is kept; run the same command again and it goes on from there")
        raise


def _describe(one: Progress) -> str:
    figures = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in (one.evaluation or {}).items())
    return f"step {one.step.step + 1:,}: loss {one.step.loss:.3f}; held out: {figures}"


def _teller(world: World) -> Callable[[str], None]:
    def tell(sentence: str) -> None:
        if world.is_first:
            print(f"malmoi: {sentence}", file=sys.stderr, flush=True)

    return tell
