"""A pre-training run: a store and a model → the folder of a run (run.py), with a model and a report at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from malmoi import __version__
from malmoi.catalog import SYSTEMS, find_objective
from malmoi.checkpoint.bundle import Bundle
from malmoi.data.holdout import split_store
from malmoi.data.store import ARRAY_FILES, Store
from malmoi.errors import MalmoiError
from malmoi.objectives.baseline import measure_unigram_loss
from malmoi.objectives.examples import Examples
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.statistics import doubt_share, measure_examples
from malmoi.objectives.task import Objective
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.facts import describe_data, describe_training
from malmoi.training.fills import fill_held_out
from malmoi.training.log import read_log
from malmoi.training.loop import BatchSource, evaluate, plan_rows
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import FREE, TrainingOptions
from malmoi.training.report import write_report
from malmoi.training.run import (
    Ending,
    Interrupted,
    Progress,
    follow_run,
    open_run,
    place_model,
    put_together,
    time_step,
)
from malmoi.training.sharding import is_sharded

# Masks of an evaluation are the same every time, and not those of any training step.
_EVALUATION_SEED = 2**62
_FILLS = 8
_MEASURED = 200  # examples, for a warning about them
# What may differ when a run goes on: held-out documents judge it, and change nothing; steps can be added.
_FREE = frozenset(f"training.{name}" for name in (*FREE, "steps", "minutes", "eval_every", "eval_batches"))


class PretrainingBatches(BatchSource[Any]):
    """The examples of a run: of one length, or short ones first and long ones in the end."""

    def __init__(self, objective: Objective[Any], store: Store, examples: ExampleOptions, course: Course) -> None:
        self._course = course
        self._short = objective.examples(store, examples)
        self._long = None
        long_seq_len = course.at(0).long_seq_len
        if long_seq_len is not None:
            self._long = objective.examples(store, replace(examples, seq_len=long_seq_len, max_predictions=None))

    def batch(self, step: int, positions: NDArray[np.int64]) -> Any:
        examples, number = self._choose(step)
        return examples.batch(number, self._course.at(step).batch_size, positions)

    def locate(self, step: int) -> str:
        examples, number = self._choose(step)
        training = self._course.at(step)
        return (
            f"malmoi inspect {examples.store.folder} --step {number} --batch-size {training.batch_size} "
            f"--show {training.batch_size} --eval-share {training.eval_share} {examples.options.spell()}"
        )

    def doubt(self) -> Iterator[str]:
        """What looks wrong with the examples, before anything is trained on them."""
        for made in (self._short, self._long):
            if isinstance(made, Examples):
                statistics = measure_examples(made, _MEASURED, self._course.at(0).batch_size)
                sentence = doubt_share(statistics, made.options)
                if sentence is not None:
                    yield sentence

    def _choose(self, step: int) -> tuple[Any, int]:
        """The examples that a step is of, and its number among them."""
        short_steps = self._course.at(step).count_short()
        if self._long is None or step < short_steps:
            return self._short, step
        return self._long, step - short_steps


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
    config = _describe_run(store, bundle, model_name, examples, training)
    with open_run(out, config, _FREE, training, world, tell) as run:
        learned, held_out = split_store(store, training.eval_share, examples.seed)
        kept = _set_untrained_aside(bundle, objective)
        if kept:
            tell(f"--objective {examples.objective} does not train {_name(kept, bundle)}: kept as in {model_name}.")
        batches = PretrainingBatches(objective, learned, examples, run.course)
        for doubt in batches.doubt():
            tell(doubt)
        model = place_model(bundle.model, training, world)
        if run.awaits_trial:
            run.fit_minutes(time_step(model, batches, objective.task, training, world), tell)
        held_out_figures = None
        if held_out is not None:
            held_out_figures = partial(_evaluate, model, objective, held_out, examples, training, world)
        ending = yield from follow_run(
            run,
            model,
            Optimizer(model, training, world),
            batches,
            objective.task,
            seed=examples.seed,
            evaluate=held_out_figures,
            tell=tell,
        )
        if is_sharded(model):
            bundle.model = put_together(bundle)
        for part, module in kept.items():
            setattr(bundle.model, part, module.to(next(bundle.model.parameters()).device))
        bundle.model.eval()
        bundle.absent -= objective.trains
        if world.is_first:
            untrained = {"not trained further": _name(kept, bundle)} if kept else {}
            finish_run(out, bundle, learned, held_out, examples, training, ending, untrained)
        world.wait()
        if ending.signal:
            raise Interrupted(ending)


def _set_untrained_aside(bundle: Bundle, objective: Objective[Any]) -> dict[str, nn.Module]:
    """Take the parts off the model that the objective does not train, so that nothing computes, divides or remembers
    them. Returned are those with weights that the model came with; what was fresh stays away for good."""
    kept = {}
    for part in sorted(SYSTEMS[bundle.system].heads.keys() - objective.trains):
        module = getattr(bundle.model, part, None)
        if module is not None and part not in bundle.absent:
            kept[part] = module
        setattr(bundle.model, part, None)
    return kept


def _name(parts: Iterable[str], bundle: Bundle) -> str:
    """Parts of a model as people call them."""
    return " and ".join(SYSTEMS[bundle.system].heads[part] for part in parts)


def _describe_run(
    store: Store, bundle: Bundle, model_name: str, examples: ExampleOptions, training: TrainingOptions
) -> dict[str, Any]:
    """What makes a run this run and no other."""
    arrays = {name: store.manifest.files[name].sha256 for name in ARRAY_FILES}
    return {
        "malmoi": __version__,
        "store": {"tokenizer": store.manifest.tokenizer, **arrays},
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
    ending: Ending,
    untrained: dict[str, str],
) -> None:
    """Write `out/model` and `out/report.html`; `untrained` is what there is to say of parts that learned nothing."""
    log = read_log(out)
    trained = ending.describe() | describe_training(bundle, examples, training, ending.steps, log) | untrained
    data = describe_data(learned, held_out, examples, training, ending.steps)
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
    bundle.save(out / "model", {**trained, **data})
    config = json.loads((out / "config.json").read_text("utf-8"))
    tables = {"What was trained": trained, "On what": data}
    write_report(out, log, tables, fills, config, unigram_loss, ending.warn())


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
    steps: int,
) -> dict[str, float]:
    """Figures on held-out documents, whatever the number of steps made."""
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
