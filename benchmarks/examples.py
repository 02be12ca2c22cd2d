"""What training examples look like on real text, and what it costs to make them.

    python benchmarks/examples.py

English is WikiText-2, Korean are the petitions, both with public WordPiece vocabularies. A batch of 32 sequences of 128
is built from step 0 and from step 1,000,000 on: once the epoch is planned both must cost the same. A run that starts or
resumes also plans the epoch, which is measured by itself and in "first batch".
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import cyclopts
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json
from prepare import TextName, make_public_tokenizer

from malmoi.data.prepare import prepare_store
from malmoi.data.store import Store
from malmoi.objectives.examples import Examples
from malmoi.objectives.options import ExampleOptions, Objective
from malmoi.objectives.statistics import ExampleStatistics, measure_examples
from malmoi.text.reading import Corpus
from malmoi.text.tokenizer import load_tokenizer

_TEXTS: tuple[TextName, ...] = ("english", "korean")
_BATCH_SIZE = 32
_STEPS = (0, 1_000_000)
_BATCHES_A_ROUND = 50


def measure_all(
    *,
    data: Path = DATA,
    examples: int = 10_000,
    rounds: int = 5,
    small: bool = False,
    json: Path | None = None,
) -> None:
    """Statistics and times for pairs and packed text, single pieces and whole words, English and Korean.

    Args:
        data: The folder of real text.
        examples: How many examples the statistics are taken over.
        small: Only try whether everything runs; the figures mean nothing.
        json: Where to write the figures.
    """
    data = find_data(data)
    statistics_rows: list[list[str]] = []
    time_rows: list[list[str]] = []
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in _TEXTS:
            store = _make_store(Path(folder), data, name, small)
            for objective, whole_words in product(get_args(Objective), (False, True)):
                options = ExampleOptions(objective=objective, whole_words=whole_words)
                label = [name, objective, "whole words" if whole_words else "pieces"]
                print(", ".join(label), file=sys.stderr, flush=True)
                statistics = measure_examples(Examples(store, options), 500 if small else examples, _BATCH_SIZE)
                times = _measure_times(store, options, rounds)
                figures[", ".join(label)] = {"statistics": asdict(statistics), "milliseconds": asdict(times)}
                statistics_rows.append([*label, *_describe_statistics(statistics)])
                time_rows.append([*label, *_describe_times(times)])
    headings = [
        "text", "objective", "masking", "examples", "in an epoch", "mean length", "full", "padding", "selected",
        "masked / random / kept", "at [CLS] or [SEP]", "random next",
    ]  # fmt: skip
    print_figures(headings, statistics_rows, packages=[])
    headings = [
        "text", "objective", "masking", "batch at step 0, ms", "at step 1,000,000, ms", "ratio",
        "plan an epoch, ms", "first batch at step 0, ms", "first batch at step 1,000,000, ms",
    ]  # fmt: skip
    print_figures(headings, time_rows, packages=[])
    write_json(json, figures, packages=[])


def _make_store(folder: Path, data: Path, name: TextName, small: bool) -> Store:
    files = {
        "english": [data / "wikitext-2" / ("test.txt" if small else "train.txt")],
        "korean": sorted((data / "petitions").glob("*.jsonl"))[: 1 if small else None],
    }
    tokenizer, out = folder / f"{name}-tokenizer", folder / name
    make_public_tokenizer(tokenizer, name, data)
    prepare_store(Corpus(files[name]), load_tokenizer(tokenizer), out, workers=1)
    return Store(out)


@dataclass(frozen=True)
class Times:
    """Milliseconds of every round. "first" is a fresh start at that step: planning and one batch."""

    batch_early: list[float]
    batch_late: list[float]
    plan: list[float]
    first_early: list[float]
    first_late: list[float]


def _measure_times(store: Store, options: ExampleOptions, rounds: int) -> Times:
    early, late = _STEPS
    # One for each side, or they would throw each other's planned epochs away.
    planned_early, planned_late = Examples(store, options), Examples(store, options)
    _build_batches(planned_early, early)
    _build_batches(planned_late, late)
    work: dict[str, Callable[[], object]] = {
        "batches, early": partial(_build_batches, planned_early, early),
        "batches, late": partial(_build_batches, planned_late, late),
        "plan": lambda: Examples(store, options).epoch_size,
        "first batch, early": lambda: Examples(store, options).batch(early, _BATCH_SIZE),
        "first batch, late": lambda: Examples(store, options).batch(late, _BATCH_SIZE),
    }
    milliseconds = interleave({label: partial(_measure_milliseconds, one) for label, one in work.items()}, rounds)
    batches_early, batches_late, plan, first_early, first_late = milliseconds.values()
    return Times(
        batch_early=[one / _BATCHES_A_ROUND for one in batches_early],
        batch_late=[one / _BATCHES_A_ROUND for one in batches_late],
        plan=plan,
        first_early=first_early,
        first_late=first_late,
    )


def _build_batches(examples: Examples, first_step: int) -> None:
    """Many, because some batches take longer than others, and one is over too soon for the clock to be trusted."""
    for step in range(first_step, first_step + _BATCHES_A_ROUND):
        examples.batch(step, _BATCH_SIZE)


def _measure_milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def _describe_statistics(statistics: ExampleStatistics) -> list[str]:
    return [
        f"{statistics.examples:,}",
        f"{statistics.epoch_size:,}",
        f"{statistics.mean_length:.1f}",
        f"{statistics.full_length:.1%}",
        f"{statistics.padding:.2%}",
        f"{statistics.selected:.2%}",
        f"{statistics.masked:.1%} / {statistics.random:.1%} / {statistics.kept:.1%}",
        f"{statistics.selected_at_specials}",
        "—" if statistics.random_next is None else f"{statistics.random_next:.1%}",
    ]


def _describe_times(times: Times) -> list[str]:
    early, late = measure_spread(times.batch_early), measure_spread(times.batch_late)
    return [
        f"{early:.2f}",
        f"{late:.2f}",
        f"**{late.median / early.median:.2f}**",
        *(f"{measure_spread(spread):.1f}" for spread in (times.plan, times.first_early, times.first_late)),
    ]


if __name__ == "__main__":
    cyclopts.run(measure_all)
