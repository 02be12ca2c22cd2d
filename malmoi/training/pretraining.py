"""A pre-training run: a store and a model → a folder, continued wherever it was stopped.

RUN/
  config.json     what was asked for; the same command finds its run by it
  log.jsonl       an object a step
  events.…        the same for TensorBoard
  checkpoints/    see state.py
  model/          the finished model, a Hugging Face folder
  report.html     curves, fills, data
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from malmoi import __version__
from malmoi.catalog import find_objective
from malmoi.checkpoint.bundle import Bundle
from malmoi.checkpoint.fitting import build_model
from malmoi.data.folders import FolderLock
from malmoi.data.holdout import split_store
from malmoi.data.store import Store
from malmoi.errors import MalmoiError
from malmoi.objectives.baseline import measure_unigram_loss
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.task import Objective
from malmoi.training.distributed import World
from malmoi.training.facts import describe_data, describe_training
from malmoi.training.fills import fill_held_out
from malmoi.training.log import RunLog, read_log, take_up_config
from malmoi.training.loop import evaluate, plan_rows, train
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.report import write_report
from malmoi.training.sharding import is_sharded, make_whole, shard_model
from malmoi.training.state import find_checkpoint, load_checkpoint, save_checkpoint
from malmoi.values import Step

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


@dataclass(frozen=True)
class Progress:
    """What a run has to say after a step."""

    step: Step
    evaluation: dict[str, float] | None


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
    with _open_run(out, _describe_run(store, bundle, model_name, examples, training), world):
        learned, held_out = split_store(store, training.eval_share, examples.seed)
        batches = PretrainingBatches(objective, learned, examples, training)
        model = _place(bundle.model, training, world)
        optimizer = Optimizer(model, training, world)
        checkpoints = out / "checkpoints"
        newest, complaints = find_checkpoint(checkpoints)
        for complaint in complaints:
            tell(f"{complaint}; the checkpoint before it is taken.")
        first_step = 0
        if newest is not None:
            first_step = load_checkpoint(newest, model, optimizer)
            tell(f"{newest}: going on after step {first_step:,}.")
        with RunLog(out, first_step) if world.is_first else _NoLog() as log, _Signals() as signals:
            for step in train(
                model, optimizer, batches, objective.task, training, world, seed=examples.seed, first_step=first_step
            ):
                done = step.step + 1
                is_last = done == training.steps
                evaluation = None
                if held_out is not None and training.eval_every and (done % training.eval_every == 0 or is_last):
                    evaluation = _evaluate(model, objective, held_out, examples, training, world)
                log.write(step, evaluation)
                # Ranks may hear of a signal at different steps; they have to stop at the same one.
                stopping = world.sum_numbers({"signal": signals.received})["signal"] > 0
                if done % training.save_every == 0 or is_last or stopping:
                    save_checkpoint(checkpoints, done, model, optimizer, training.keep, world)
                yield Progress(step, evaluation)
                if stopping and not is_last:
                    raise Interrupted(signals.received or int(signal.SIGTERM))
        if is_sharded(model):
            bundle.model = _put_together(bundle)
        bundle.model.eval()
        if world.is_first:
            finish_run(out, bundle, learned, held_out, examples, training)
        world.wait()


def _place(model: nn.Module, training: TrainingOptions, world: World) -> nn.Module:
    """The model where it is to compute, whole or divided among the ranks."""
    if not training.shard:
        return model.to(world.device)
    shard_model(model, world.device, world.size)
    return model


def _put_together(bundle: Bundle) -> nn.Module:
    """The whole model on this rank's CPU, from a divided one; every rank has to call this."""
    whole = build_model(bundle.system, bundle.config, seed=0)
    whole.load_state_dict({name: make_whole(tensor).cpu() for name, tensor in bundle.model.state_dict().items()})
    return whole


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


@contextmanager
def _open_run(out: Path, config: dict[str, Any], world: World) -> Iterator[None]:
    """Hold the folder of a run, new or begun before, for as long as this is active."""
    if out.is_file():
        raise MalmoiError(f"--out {out} is a file; name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    if not world.is_first:
        world.wait()
        yield
        return
    with FolderLock(out):
        take_up_config(out, config)
        world.wait()
        yield


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


class Interrupted(Exception):
    """The run was asked to stop; it has saved a checkpoint."""


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


class _NoLog:
    """The log of a rank that is not the first."""

    def write(self, step: Step, evaluation: dict[str, float] | None) -> None:
        pass

    def __enter__(self) -> _NoLog:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Signals:
    """Notes that the process was asked to end, so that the step at work can be finished and saved first."""

    def __enter__(self) -> _Signals:
        self.received = 0
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def _note(self, number: int, frame: object) -> None:
        if self.received:
            raise KeyboardInterrupt  # asked twice: at once
        self.received = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
