"""A run of training in its folder, continued wherever it was stopped: pre-training and fine-tuning alike.

RUN/
  config.json     what was asked for; the same command finds its run by it
  log.jsonl       an object a step
  events.…        the same for TensorBoard
  checkpoints/    see state.py
  model/          the finished model, a Hugging Face folder
  report.html     curves, figures, examples
"""

from __future__ import annotations

import copy
import math
import signal
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from malmoi.checkpoint.bundle import Bundle
from malmoi.checkpoint.fitting import build_model
from malmoi.data.folders import FolderLock
from malmoi.errors import MalmoiError
from malmoi.objectives.task import BatchT, Task
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.log import RunLog, read_log
from malmoi.training.loop import BatchSource, train
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.run_config import RunConfig
from malmoi.training.sharding import make_whole, shard_model
from malmoi.training.signals import Signals
from malmoi.training.state import (
    count_steps,
    list_checkpoints,
    load_checkpoint,
    require_finite,
    save_checkpoint,
    take_up_checkpoints,
)
from malmoi.values import Step

_TRIAL_SECONDS = 3.0


@dataclass(frozen=True)
class Progress:
    """What a run has to say after a step."""

    step: Step
    evaluation: dict[str, float] | None
    total: int


@dataclass(frozen=True)
class Ending:
    """How far a run has come, and the signal that stopped it, if one did."""

    steps: int
    total: int
    signal: int

    def describe(self) -> dict[str, str]:
        """For the table of the report and the model card: nothing of a run that has come to its end."""
        where = f"stopped after step {self.steps:,} of {self.total:,}; the same command goes on"
        return {"unfinished": where} if self.signal else {}

    def warn(self) -> str:
        """The same as a sentence before others."""
        return "".join(f"{name.capitalize()}: {where}. " for name, where in self.describe().items())


class Interrupted(Exception):
    """The run was asked to stop; it has saved a checkpoint, and the model as it is."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.signal)
        self.ending = ending


class Run:
    """The folder of a run, held by this process while it is open."""

    def __init__(self, out: Path, config: RunConfig, training: TrainingOptions, world: World) -> None:
        self.out, self.training, self.world = out, training, world
        self.checkpoints = out / "checkpoints"
        self.newest = max(list_checkpoints(self.checkpoints), key=count_steps, default=None)
        self.first_step = 0 if self.newest is None else count_steps(self.newest)
        self.course = Course(training, config.turns)
        self._config = config

    def turn(self, step: int, total: int) -> None:
        """From `step` on the run has `total` steps; noted before any of them is made."""
        self.course.turn(step, total)
        if self.world.is_first:
            self._config.note_course(self.course.turns, self.training.minutes)

    @property
    def awaits_trial(self) -> bool:
        """Whether it has to be found out how many steps fit into the --minutes that are asked for."""
        return self.training.minutes is not None and self.training.minutes != self._config.planned_minutes

    def plan_steps(self, tell: Callable[[str], None]) -> None:
        """Follow the number of steps that is asked for now, whatever it was before."""
        if self.training.minutes is not None:
            return
        asked, before = self.training.steps, self.course.total
        if self._config.turns and asked == before:
            return
        if asked < self.first_step:
            raise MalmoiError(
                f"--steps {asked}: {self.first_step:,} steps are made already in {self.out}; give at least as many, or "
                "choose another --out."
            )
        if asked != before:
            tell(
                f"--steps {asked}: the run had {before:,}; from step {self.first_step:,} on the learning rate follows "
                "the new number."
            )
        self.turn(self.first_step, asked)

    def fit_minutes(self, seconds: float, tell: Callable[[str], None]) -> None:
        """Plan as many steps as fit into --minutes if one takes so many `seconds`."""
        assert self.training.minutes is not None
        elapsed = [record.get("elapsed", 0.0) for record in read_log(self.out) if record["step"] < self.first_step]
        left = self.training.minutes * 60 - (elapsed[-1] if elapsed else 0.0)
        total = max(1, self.first_step + int(max(0.0, left) / seconds))
        self.turn(self.first_step, total)
        tell(f"--minutes {self.training.minutes:g}: about {total:,} steps, of {seconds:.3g} seconds each.")

    def review(self, done: int, elapsed: float) -> None:
        """Take steps off or add some, so that the run takes the --minutes that it has."""
        if self.training.minutes is None or not self.course.is_review(done):
            return
        fitting = self.course.fit(done, elapsed, self.training.minutes * 60) if self.world.is_first else None
        # The first rank's clock counts.
        total = int(self.world.sum_numbers({"total": float(fitting or 0)})["total"])
        if total:
            self.turn(done, total)


def follow_run(
    run: Run,
    model: nn.Module,
    optimizer: Optimizer,
    batches: BatchSource[BatchT],
    task: Task[BatchT],
    *,
    seed: int,
    evaluate: Callable[[int], dict[str, float]] | None,
    tell: Callable[[str], None],
    has_enough: Callable[[], bool] | None = None,
) -> Generator[Progress, None, Ending]:
    """Train from the newest good checkpoint on, until all steps are made or `has_enough` says so, which is asked before
    the first step and after every evaluation."""
    training, course, world, done = run.training, run.course, run.world, run.first_step
    if run.newest is not None:
        load_checkpoint(run.newest, model, optimizer)
        is_done = done >= course.total
        tell(f"{run.newest}: {f'all {done:,} steps are made' if is_done else f'going on after step {done:,}'}.")
    with RunLog(run.out, done, tell) if world.is_first else _NoLog() as log, Signals() as signals:
        world.wait()  # now the log says the same to every rank
        if has_enough is not None and has_enough():
            return Ending(done, course.total, 0)
        for step in train(model, optimizer, batches, task, course, world, seed=seed, first_step=done):
            done = step.step + 1
            run.review(done, log.elapsed)
            is_last = done >= course.total
            evaluation = None
            if evaluate is not None and training.eval_every and (done % training.eval_every == 0 or is_last):
                require_finite(dict(model.named_parameters()), done)
                evaluation = evaluate(done)
                _require_figures(evaluation, done)
            log.write(step, evaluation)
            is_enough = evaluation is not None and has_enough is not None and has_enough()
            # Ranks may hear of a signal at different steps; they have to stop at the same one.
            stopping = world.sum_numbers({"signal": signals.received})["signal"] > 0
            if done % training.save_every == 0 or is_last or is_enough or stopping:
                save_checkpoint(run.checkpoints, done, model, optimizer, training.keep, world)
            yield Progress(step, evaluation, course.total)
            if is_enough:
                break
            if stopping and not is_last:
                return Ending(done, course.total, signals.received or int(signal.SIGTERM))
        return Ending(done, course.total, 0)


def _require_figures(evaluation: dict[str, float], steps: int) -> None:
    for name, value in evaluation.items():
        if not math.isfinite(value):
            raise MalmoiError(
                f"after step {steps:,}: {name} on held-out examples is {value}; checkpoints are kept. Try a lower --lr "
                "in another --out."
            )


def time_step(
    model: nn.Module,
    batches: BatchSource[BatchT],
    task: Task[BatchT],
    training: TrainingOptions,
    world: World,
) -> float:
    """Seconds that a step takes, tried for a moment on a copy of the model."""
    tried = copy.deepcopy(model)
    optimizer = Optimizer(tried, training, world)
    seconds = []
    for step in train(tried, optimizer, batches, task, Course(training), world, seed=0):
        seconds.append(step.seconds)
        # All ranks have to stop at the same step.
        spent = world.sum_numbers({"seconds": sum(seconds)})["seconds"] / world.size
        if len(seconds) > 2 and spent > _TRIAL_SECONDS:
            break
    first_is_slow = seconds[1:] or seconds  # it allocates what the others use again
    return world.sum_numbers({"seconds": sum(first_is_slow) / len(first_is_slow)})["seconds"] / world.size


def place_model(model: nn.Module, training: TrainingOptions, world: World) -> nn.Module:
    """The model where it is to compute, whole or divided among the ranks."""
    if not training.shard:
        return model.to(world.device)
    shard_model(model, world.device, world.size)
    return model


def put_together(bundle: Bundle) -> nn.Module:
    """The whole model on this rank's CPU, from a divided one; every rank has to call this."""
    whole = build_model(bundle.system, bundle.config, seed=0, head=bundle.head)
    for part in dict(whole.named_children()).keys() - dict(bundle.model.named_children()).keys():
        setattr(whole, part, None)
    whole.load_state_dict({name: make_whole(tensor).cpu() for name, tensor in bundle.model.state_dict().items()})
    return whole


@contextmanager
def open_run(
    out: Path,
    config: dict[str, Any],
    free: Collection[str],
    training: TrainingOptions,
    world: World,
    tell: Callable[[str], None],
) -> Iterator[Run]:
    """Hold the folder of a run, new or begun before, for as long as this is active.

    `config` makes it this run and no other, but for the settings that are `free` to differ when it goes on.
    """
    if out.is_file():
        raise MalmoiError(f"--out {out} is a file; name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    kept = RunConfig(out)
    if not world.is_first:
        world.wait()
        kept.read()
        yield Run(out, kept, training, world)
        return
    with FolderLock(out):
        kept.take_up(config, free)
        newest, complaints = take_up_checkpoints(out / "checkpoints")
        for complaint in complaints:
            tell(f"{complaint}.")
        if complaints and newest is None:
            tell(f"{out}: no checkpoint is left; the run starts from the beginning.")
        run = Run(out, kept, training, world)
        run.plan_steps(tell)
        world.wait()
        yield run


class _NoLog:
    """The log of a rank that is not the first."""

    elapsed = 0.0

    def write(self, step: Step, evaluation: dict[str, float] | None) -> None:
        pass

    def __enter__(self) -> _NoLog:
        return self

    def __exit__(self, *_: object) -> None:
        pass
