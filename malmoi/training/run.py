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

import signal
from collections.abc import Callable, Iterator
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
from malmoi.training.distributed import World
from malmoi.training.log import RunLog, take_up_config
from malmoi.training.loop import BatchSource, train
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.sharding import make_whole, shard_model
from malmoi.training.state import find_checkpoint, load_checkpoint, save_checkpoint
from malmoi.values import Step


@dataclass(frozen=True)
class Progress:
    """What a run has to say after a step."""

    step: Step
    evaluation: dict[str, float] | None


class Interrupted(Exception):
    """The run was asked to stop; it has saved a checkpoint."""


def follow_run(
    out: Path,
    model: nn.Module,
    optimizer: Optimizer,
    batches: BatchSource[BatchT],
    task: Task[BatchT],
    training: TrainingOptions,
    world: World,
    *,
    seed: int,
    evaluate: Callable[[], dict[str, float]] | None,
    tell: Callable[[str], None],
    has_enough: Callable[[], bool] | None = None,
) -> Iterator[Progress]:
    """Train in the folder `out`, from its newest good checkpoint on, until all steps are made or `has_enough` says so,
    which is asked before the first step and after every evaluation."""
    checkpoints = out / "checkpoints"
    newest, complaints = find_checkpoint(checkpoints)
    for complaint in complaints:
        tell(f"{complaint}; the checkpoint before it is taken.")
    first_step = 0
    if newest is not None:
        first_step = load_checkpoint(newest, model, optimizer)
        tell(f"{newest}: going on after step {first_step:,}.")
    with RunLog(out, first_step) if world.is_first else _NoLog() as log, _Signals() as signals:
        world.wait()  # now the log says the same to every rank
        if has_enough is not None and has_enough():
            return
        for step in train(model, optimizer, batches, task, training, world, seed=seed, first_step=first_step):
            done = step.step + 1
            is_last = done == training.steps
            evaluation = None
            if evaluate is not None and (done % training.eval_every == 0 or is_last):
                evaluation = evaluate()
            log.write(step, evaluation)
            is_enough = evaluation is not None and has_enough is not None and has_enough()
            # Ranks may hear of a signal at different steps; they have to stop at the same one.
            stopping = world.sum_numbers({"signal": signals.received})["signal"] > 0
            if done % training.save_every == 0 or is_last or is_enough or stopping:
                save_checkpoint(checkpoints, done, model, optimizer, training.keep, world)
            yield Progress(step, evaluation)
            if is_enough:
                return
            if stopping and not is_last:
                raise Interrupted(signals.received or int(signal.SIGTERM))


def place_model(model: nn.Module, training: TrainingOptions, world: World) -> nn.Module:
    """The model where it is to compute, whole or divided among the ranks."""
    if not training.shard:
        return model.to(world.device)
    shard_model(model, world.device, world.size)
    return model


def put_together(bundle: Bundle) -> nn.Module:
    """The whole model on this rank's CPU, from a divided one; every rank has to call this."""
    whole = build_model(bundle.system, bundle.config, seed=0, head=bundle.head)
    whole.load_state_dict({name: make_whole(tensor).cpu() for name, tensor in bundle.model.state_dict().items()})
    return whole


@contextmanager
def open_run(out: Path, config: dict[str, Any], world: World) -> Iterator[None]:
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
