"""Whether pre-training learns what can be learned, and nothing where there is nothing to learn.

    python benchmarks/learning.py words          # BERT-mini on WikiText-2, and on the same words in random order
    python benchmarks/learning.py topics         # next sentences of two topics, and with labels that mean nothing
    python benchmarks/learning.py progressions   # a tiny BERT on arithmetic progressions, and with everything masked

Every experiment has a control, from which what is to be learned has been taken away; it must stay where it began.
"""

from __future__ import annotations

import json as json_format
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import cyclopts
import numpy as np
from measuring import DATA, find_data, print_figures, write_json
from small_worlds import (
    ALONE,
    Result,
    hide_everything,
    learn_progressions,
    learn_topics,
    leave,
    shuffle_labels,
)

from malmoi.checkpoint.bundle import create_bundle
from malmoi.data.prepare import prepare_store
from malmoi.data.store import Store
from malmoi.objectives.baseline import measure_unigram_loss
from malmoi.objectives.masked import MASKED
from malmoi.objectives.options import ExampleOptions
from malmoi.systems.bert import PRESETS
from malmoi.text.reading import Corpus
from malmoi.text.tokenizer import Tokenizer
from malmoi.text.tokenizer_training import train_tokenizer
from malmoi.training.loop import evaluate
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import evaluation_batches, pretrain
from malmoi.values import Batch

_PACKAGES = ["torch"]
_ROWS_OF_A_CURVE = 10

app = cyclopts.App(help=__doc__)


@app.command
def words(
    *,
    data: Path = DATA,
    steps: int = 9000,
    batch_size: int = 8,
    seq_len: int = 64,
    lr: float = 4e-4,
    out: Path | None = None,
    small: bool = False,
    json: Path | None = None,
) -> None:
    """BERT-mini learns hidden words of WikiText-2; its control learns from the same words in random order.

    Args:
        data: The folder of real text.
        out: Keep both runs in this folder, each with its report; the same command again goes on with them.
        small: Only try whether everything runs; the figures mean nothing.
        json: Where to write the figures.
    """
    folder = find_data(data) / "wikitext-2"
    training = TrainingOptions(
        steps=20 if small else steps,
        batch_size=batch_size,
        lr=lr,
        warmup_steps=steps // 16,
        eval_share=0,
        save_every=10**9,
    )
    examples = ExampleOptions(objective="mlm", seq_len=seq_len)
    with tempfile.TemporaryDirectory() as temporary:
        place = out or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        text = folder / ("valid.txt" if small else "train.txt")
        tokenizer = train_tokenizer((document.text for document in Corpus([text])), kind="wordpiece", vocab_size=8000)
        shuffled = place / "shuffled.txt"
        if not shuffled.exists():
            shuffled.write_text(shuffle_words(text.read_text("utf-8")), "utf-8")
        stores = {
            name: _prepare(path, tokenizer, place / f"store-{name}")
            for name, path in (("real", text), ("control", shuffled), ("held-out", folder / "valid.txt"))
        }
        # The same hidden words for both runs and for the unigram loss.
        held_out = list(evaluation_batches(MASKED, stores["held-out"], examples, replace(training, eval_batches=256)))
        curves = {
            name: _follow_run(stores[name], held_out, place / f"run-{name}", examples, training)
            for name in ("real", "control")
        }
    unigram = measure_unigram_loss(stores["real"], held_out)
    rows = [
        [
            f"{real.step:,}",
            f"{real.minutes:.1f}",
            f"{real.training:.3f}",
            f"**{real.held_out:.3f}**",
            f"{real.accuracy:.1%}",
            f"{control.held_out:.3f}",
            f"{unigram:.3f}",
            f"{unigram - real.held_out:+.3f}",
        ]
        for real, control in zip(curves["real"], curves["control"], strict=True)
    ]
    print_figures(
        [
            "steps", "minutes", "loss, training", "loss, validation", "right, validation",
            "control's loss, validation", "unigram loss", "won over unigram",
        ],
        rows,
        packages=_PACKAGES,
    )  # fmt: skip
    figures = {name: [asdict(point) for point in curve] for name, curve in curves.items()}
    write_json(json, {"unigram": unigram, **figures}, packages=_PACKAGES)


def shuffle_words(text: str) -> str:
    """The same words as often, and lines, headings and articles as they were, but every word somewhere else."""
    lines = text.split("\n")
    is_prose = [bool(line.strip()) and not line.startswith(" =") for line in lines]
    pool = [word for line, prose in zip(lines, is_prose, strict=True) if prose for word in line.split()]
    random.Random(0).shuffle(pool)
    drawn = iter(pool)
    return "\n".join(
        " ".join(next(drawn) for _ in line.split()) if prose else line
        for line, prose in zip(lines, is_prose, strict=True)
    )


@dataclass(frozen=True)
class Point:
    """How far a run had come at a step. Losses are nats a hidden word."""

    step: int
    minutes: float
    training: float
    held_out: float
    accuracy: float


def _follow_run(
    store: Store, held_out: list[Batch], out: Path, examples: ExampleOptions, training: TrainingOptions
) -> list[Point]:
    # Text that is read about once cannot be learned by heart, so dropout would only cost time.
    size = replace(PRESETS["bert-mini"], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    bert = create_bundle(size, store.tokenizer, seed=examples.seed)
    every = max(1, training.steps // _ROWS_OF_A_CURVE)
    # A stopped run goes on where it was, so its points are kept beside it.
    written = out.with_suffix(".jsonl")
    lines = written.read_text("utf-8").splitlines() if written.exists() else []
    curve = [Point(**json_format.loads(line)) for line in lines]
    losses: list[float] = []
    began = time.perf_counter() - 60 * max((point.minutes for point in curve), default=0.0)
    for progress in pretrain(store, bert, out, examples, training, ALONE, model_name="bert-mini", tell=_tell):
        losses.append(progress.step.parts["mlm"])
        done = progress.step.step + 1
        if done % every == 0 or done == training.steps:
            loss, accuracy = evaluate(bert.model, iter(held_out), MASKED.task, "fp32", ALONE.device)
            minutes = (time.perf_counter() - began) / 60
            curve.append(Point(done, minutes, float(np.mean(losses[-every:])), loss["mlm"], accuracy["mlm"]))
            written.write_text("".join(json_format.dumps(asdict(point)) + "\n" for point in curve), "utf-8")
            _tell(f"{out.name}: {curve[-1]}")
    return curve


@app.command
def topics(*, steps: int = 300, json: Path | None = None) -> None:
    """Two documents, one of each topic's words: the next segment is of the same topic, a random one of the other.

    With more documents of a topic half of the random segments would look right, and 75 % would be the best possible.

    Args:
        json: Where to write the figures.
    """
    results = {
        "labels as they are": learn_topics(leave, steps),
        "control: labels shuffled": learn_topics(shuffle_labels, steps),
    }
    _show(results, json)


@app.command
def progressions(*, steps: int = 2500, json: Path | None = None) -> None:
    """Sentences that count in steps through 24 letters: what is hidden, and whether it goes on, follows from the rest.

    Args:
        json: Where to write the figures.
    """
    results = {
        "as it is": learn_progressions(leave, steps),
        "control: all masked, labels shuffled": learn_progressions(hide_everything, steps),
    }
    _show(results, json)


def _prepare(path: Path, tokenizer: Tokenizer, out: Path) -> Store:
    prepare_store(Corpus([path]), tokenizer, out, workers=1)
    return Store(out)


def _show(results: dict[str, Result], json: Path | None) -> None:
    rows = [
        [
            name,
            f"{result.loss['mlm']:.3f}",
            f"{result.accuracy['mlm']:.1%}",
            f"{result.loss['nsp']:.3f}",
            f"**{result.accuracy['nsp']:.1%}**",
        ]
        for name, result in results.items()
    ]
    headings = ["held out", "hidden words: loss", "right", "next sentence: loss", "right"]
    print_figures(headings, rows, packages=_PACKAGES)
    write_json(json, {name: asdict(result) for name, result in results.items()}, packages=_PACKAGES)


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    app()
