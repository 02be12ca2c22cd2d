"""malmoi pretrain"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from malmoi.objectives.options import ExampleOptions
from malmoi.training.options import TrainingOptions

if TYPE_CHECKING:
    from malmoi.checkpoint.bundle import Bundle
    from malmoi.data.store import Store
    from malmoi.training.run import Progress


def pretrain(
    store: Annotated[Path, Parameter(help="A store made by malmoi prepare.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder of the run; the same command again goes on with it.")],
    model: Annotated[
        str, Parameter(help="A preset such as bert-mini, or a folder or hub id to go on from.")
    ] = "bert-mini",
    examples: ExampleOptions | None = None,
    training: TrainingOptions | None = None,
    device: Annotated[str | None, Parameter(help="Where to compute; a GPU if there is one.")] = None,
) -> None:
    """Train a model on a store from scratch, or go on with one. Under torchrun all ranks share the work."""
    from malmoi.data.store import Store
    from malmoi.progress import progress
    from malmoi.training.distributed import join_world
    from malmoi.training.pretraining import pretrain as run
    from malmoi.training.run import Interrupted

    examples, training = examples or ExampleOptions(), training or TrainingOptions()
    opened = Store(store)
    with join_world(device) as world:
        tell = _tell if world.is_first else _ignore
        bundle = open_model(model, opened, examples.seed, tell)
        try:
            with progress("training", training.steps, "steps") as show:
                for one in run(opened, bundle, out, examples, training, world, model_name=model, tell=tell):
                    if world.is_first:
                        show(one.step.step + 1)
                        if one.evaluation is not None:
                            tell(describe(one))
        except Interrupted as stop:
            tell(f"stopped by signal {stop}; a checkpoint is saved, run the same command again to go on.")
            raise SystemExit(128 + int(str(stop))) from None
    if world.is_first:
        print(f"{out / 'model'}: the model; {out / 'report.html'}: how it went")


def describe(progress: Progress) -> str:
    """A step with an evaluation, in a line."""
    held_out = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in (progress.evaluation or {}).items())
    return f"step {progress.step.step + 1:,}: loss {progress.step.loss:.3f}; held out: {held_out}"


def open_model(model: str, store: Store, seed: int, tell: Callable[[str], None]) -> Bundle:
    """A preset for the store's tokenizer, or a folder or hub id to go on from, grown if the tokenizer has."""
    from malmoi.checkpoint.bundle import create_bundle, load_bundle
    from malmoi.checkpoint.growth import grow_vocabulary

    if not Path(model).exists() and "/" not in model:
        return create_bundle(model, store.tokenizer, seed=seed)
    bundle = load_bundle(model)
    if bundle.head is not None:
        bundle.change_head(None, seed)
    if bundle.tokenizer.fingerprint != store.tokenizer.fingerprint:
        added = grow_vocabulary(bundle, store.tokenizer)
        tell(f"{model}: its vocabulary grows by {added:,} pieces to {bundle.config.vocab_size:,}.")
    return bundle


def _tell(sentence: str) -> None:
    print(f"malmoi: {sentence}", file=sys.stderr, flush=True)


def _ignore(sentence: str) -> None:
    pass
