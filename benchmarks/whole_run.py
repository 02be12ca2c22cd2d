"""What a pre-training run costs beyond its bare steps: making batches, logging, saving.

    python benchmarks/whole_run.py

"Bare" is the training loop on one batch that lies ready; "whole" is `malmoi pretrain` from its first step to its last
checkpoint on WikiText-2, with a log, TensorBoard events and a checkpoint in the middle and at the end (evaluation is
off). Both have the same shapes: 32 sequences of 128 without padding (--objective mlm), a vocabulary of 30,522.
Beside it, how much of a step goes into making its batch.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import cyclopts
import numpy as np
import torch
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json

from malmoi.catalog import find_objective
from malmoi.checkpoint.bundle import create_bundle
from malmoi.data.prepare import prepare_store
from malmoi.data.store import Store
from malmoi.objectives.options import ExampleOptions
from malmoi.text.reading import Corpus
from malmoi.text.tokenizer import load_tokenizer
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.loop import BatchSource, train
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import PretrainingBatches, pretrain
from malmoi.values import Batch

_ALONE = World(0, 1, torch.device("cpu"))
_EXAMPLES = ExampleOptions(objective="mlm")
_PROCESSES = multiprocessing.get_context("spawn")
_PACKAGES = ["torch"]


def measure_runs(
    *,
    sizes: tuple[str, ...] = ("tiny", "mini"),
    rounds: int = 3,
    steps: int = 60,
    data: Path = DATA,
    json: Path | None = None,
) -> None:
    """Time bare steps and whole runs in turn.

    Args:
        sizes: Presets of BERT.
        steps: Steps of a run.
        data: The folder of real text.
        json: Where to write the figures.
    """
    data = find_data(data)
    rows, figures = [], {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        tokenizer = load_tokenizer(data / "vocabs" / "bert-base-uncased_vocab.txt")
        prepare_store(Corpus([data / "wikitext-2" / "train.txt"]), tokenizer, store)
        for size in sizes:
            sides = {name: partial(_in_process, side, store, size, steps) for name, side in _SIDES.items()}
            seconds = interleave(sides, rounds)
            bare, whole, batch = (measure_spread(1000 * one for one in seconds[name]) for name in _SIDES)
            more = statistics.median(seconds["whole"]) / statistics.median(seconds["bare"]) - 1
            share = statistics.median(seconds["batch"]) / statistics.median(seconds["bare"])
            figures[size] = {"bare_ms": asdict(bare), "whole_ms": asdict(whole), "more": more, "batch_share": share}
            rows.append([size, f"{bare:.0f}", f"{whole:.0f}", f"{more:+.1%}", f"{batch:.2f}", f"{share:.2%}"])
    print_figures(
        ["BERT", "bare step, ms", "step of a whole run, ms", "more", "making a batch, ms", "share of the bare step"],
        rows,
        packages=_PACKAGES,
    )
    write_json(json, figures, packages=_PACKAGES)


def _in_process(side: object, store: Path, size: str, steps: int) -> float:
    with _PROCESSES.Pool(1) as pool:
        seconds: float = pool.apply(side, (store, size, steps))  # type: ignore[arg-type]
        return seconds


def run_bare(store: Path, size: str, steps: int) -> float:
    keep_buffers()
    source = _Same(_open_batches(store, steps).batch(0, np.arange(32)))
    model = create_bundle(f"bert-{size}", Store(store).tokenizer).model
    options = TrainingOptions(steps=steps)
    task, course = find_objective("bert", _EXAMPLES.objective).task, Course(options)
    return _time_steps(train(model, Optimizer(model, options, _ALONE), source, task, course, _ALONE, seed=0), steps)


def run_whole(store: Path, size: str, steps: int) -> float:
    opened = Store(store)
    bundle = create_bundle(f"bert-{size}", opened.tokenizer)
    options = TrainingOptions(steps=steps, eval_every=0, save_every=steps // 2)
    with tempfile.TemporaryDirectory() as out:
        run = pretrain(
            opened, bundle, Path(out) / "run", _EXAMPLES, options, _ALONE, model_name=f"bert-{size}", tell=print
        )
        return _time_steps(run, steps)


def run_batches(store: Path, size: str, steps: int) -> float:
    source = _open_batches(store, steps)
    source.batch(0, np.arange(32))
    began = time.perf_counter()
    for step in range(steps):
        source.batch(step, np.arange(32))
    return (time.perf_counter() - began) / steps


_SIDES = {"bare": run_bare, "whole": run_whole, "batch": run_batches}


class _Same(BatchSource[Batch]):
    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def batch(self, step: int, positions: object) -> Batch:
        return self._batch

    def locate(self, step: int) -> str:
        return "the same batch at every step"


def _open_batches(store: Path, steps: int) -> PretrainingBatches:
    objective = find_objective("bert", _EXAMPLES.objective)
    return PretrainingBatches(objective, Store(store), _EXAMPLES, Course(TrainingOptions(steps=steps)))


def _time_steps(run: object, steps: int) -> float:
    """Seconds a step, from the end of the first step on, in which buffers are allocated."""
    began = 0.0
    for number, _ in enumerate(run):  # type: ignore[call-overload]
        if number == 0:
            began = time.perf_counter()
        if number == steps - 1:
            break
    return (time.perf_counter() - began) / (steps - 1)


if __name__ == "__main__":
    cyclopts.run(measure_runs)
