"""A pre-training run: a store and a model → the folder of a run (run.py), with a model and a report at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from malmoi import __version__
from malmoi.catalog import find_objective
from malmoi.checkpoint.bundle import Bundle
from malmoi.data.holdout import split_store
from malmoi.data.store import Store
from malmoi.errors import MalmoiError
from malmoi.objectives.baseline import measure_unigram_loss
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.task import Objective
from malmoi.training.distributed import World
from malmoi.training.facts import describe_data, describe_training
from malmoi.training.fills import fill_held_out
from malmoi.training.log import read_log
from malmoi.training.loop import evaluate, plan_rows
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.report import write_report
from malmoi.training.run import Progress, follow_run, open_run, place_model, put_together
from malmoi.training.sharding import is_sharded

# Masks of an evaluation are the same every time, and not those of any training step.
_EVALUATION_SEED = 2**62
_FILLS = 8


class PretrainingBatches:
    """The examples of a run: of one length, or short ones first and long ones in the end."""

    def __init__(
        self, objective: Objective[Any], store: Store, examples: ExampleOptions, training: TrainingOptions
    ) -> None:
        self._training = training
        self._batch_size = training.batch_size
        self._short_steps = training.count_short()
        self._short = objective.examples(store, examples)
        self._long = None
        if training.long_seq_len is not None:
            long = replace(examples, seq_len=training.long_seq_len, max_predictions=None)
            self._long = objective.examples(store, long)

    def batch(self, step: int, positions: NDArray[np.int64]) -> Any:
        if self._long is None or step < self._short_steps:
            return self._short.batch(step, self._batch_size, positions)
        return self._long.batch(step - self._short_steps, self._batch_size, positions)

    def locate(self, step: int) -> str:
        examples = self._short
        if self._long is not None and step >= self._short_steps:
            examples, step = self._long, step - self._short_steps
        return (
            f"malmoi inspect {examples.store.folder} --step {step} --batch-size {self._batch_size} "
            f"--show {self._batch_size} --eval-share {self._training.eval_share} {examples.options.spell()}"
        )


def pretrain(
    store: Store,
    bundle: Bundle,
    out: Path,
    examples: ExampleOptions,
    training: TrainingOptions,
    world: World,
    *,
    model_name: str,
    tell: Callable[[str], None],
) -> Iterator[Progress]:
    """Train in the folder `out`, from its newest good checkpoint on; at the end `out/model` holds the model."""
    _require_fit(store, bundle, examples, training, world)
    objective = find_objective(bundle.system, examples.objective)
    keep_buffers()
    with open_run(out, _describe_run(store, bundle, model_name, examples, training), world):
        learned, held_out = split_store(store, training.eval_share, examples.seed)
        batches = PretrainingBatches(objective, learned, examples, training)
        model = place_model(bundle.model, training, world)
        held_out_figures = None
        if held_out is not None and training.eval_every:
            held_out_figures = partial(_evaluate, model, objective, held_out, examples, training, world)
        yield from follow_run(
            *(out, model, Optimizer(model, training, world), batches, objective.task, training, world),
            seed=examples.seed,
            evaluate=held_out_figures,
            tell=tell,
        )
        if is_sharded(model):
            bundle.model = put_together(bundle)
        bundle.model.eval()
        if world.is_first:
            finish_run(out, bundle, learned, held_out, examples, training)
        world.wait()


def _describe_run(
    store: Store, bundle: Bundle, model_name: str, examples: ExampleOptions, training: TrainingOptions
) -> dict[str, Any]:
    """What makes a run this run and no other."""
    return {
        "malmoi": __version__,
        "store": {"tokenizer": store.manifest.tokenizer, "tokens": store.manifest.files["tokens.bin"].sha256},
        "model": model_name,
        "system": bundle.system,
        "architecture": asdict(bundle.config),
        "examples": asdict(examples),
        "training": asdict(training),
    }


def finish_run(
    out: Path,
    bundle: Bundle,
    learned: Store,
    held_out: Store | None,
    examples: ExampleOptions,
    training: TrainingOptions,
) -> None:
    """Write `out/model` and `out/report.html`."""
    log = read_log(out)
    trained = describe_training(bundle, examples, training, log)
    data = describe_data(learned, held_out, examples, training)
    unigram_loss, fills = None, []
    if held_out is not None:
        objective = find_objective(bundle.system, examples.objective)
        batches = list(evaluation_batches(objective, held_out, examples, training))
        unigram_loss = measure_unigram_loss(learned, batches)
        trained["unigram loss on held-out text"] = f"{unigram_loss:.3f}"
        evaluated = [record["evaluation"] for record in log if "evaluation" in record]
        if evaluated:
            trained |= {f"held out: {name.replace('_', ' ')}": f"{value:.3f}" for name, value in evaluated[-1].items()}
        fills = fill_held_out(bundle, batches[0], _FILLS)
    bundle.absent = frozenset()
    bundle.save(out / "model", {**trained, **data})
    config = json.loads((out / "config.json").read_text("utf-8"))
    write_report(out, log, {"What was trained": trained, "On what": data}, fills, config, unigram_loss)


def evaluation_batches(
    objective: Objective[Any], store: Store, examples: ExampleOptions, training: TrainingOptions
) -> Iterator[Any]:
    """The batches of every evaluation: always the same."""
    fixed = objective.examples(store, replace(examples, duplicates=1, seed=_EVALUATION_SEED))
    count = min(training.eval_batches, max(1, fixed.epoch_size // training.batch_size))
    return (fixed.batch(number, training.batch_size) for number in range(count))


def _evaluate(
    model: nn.Module,
    objective: Objective[Any],
    store: Store,
    examples: ExampleOptions,
    training: TrainingOptions,
    world: World,
) -> dict[str, float]:
    chosen = evaluation_batches(objective, store, examples, training)
    losses, accuracy = evaluate(model, chosen, objective.task, training.precision, world.device)
    return {
        **{f"{name}_loss": value for name, value in losses.items()},
        **{f"{name}_accuracy": value for name, value in accuracy.items()},
    }


def _require_fit(
    store: Store, bundle: Bundle, examples: ExampleOptions, training: TrainingOptions, world: World
) -> None:
    store.require_tokenizer(bundle.tokenizer)
    plan_rows(training, world)
    if training.shard and world.size == 1:
        raise MalmoiError("--shard divides a model among ranks; run it under torchrun with two ranks or more.")
    limit = bundle.config.max_position_embeddings
    for option, length in (("--seq-len", examples.seq_len), ("--long-seq-len", training.long_seq_len or 0)):
        if length > limit:
            raise MalmoiError(f"{option} {length}: the model has {limit} positions; choose at most that many.")
