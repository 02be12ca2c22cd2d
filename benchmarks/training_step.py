"""How fast a pre-training step is: malmoi against transformers' BertForPreTraining in its fastest ordinary set-up.

    python benchmarks/training_step.py

Both sides have the same sizes, dropout and batch: 32 sequences of 128, vocabulary 30,522, 15% of the tokens to be
predicted, next-sentence labels. transformers runs with SDPA attention and fused AdamW; both clip gradients to norm 1. A
step is forward, backward, clipping, update. Beside it: the rate of a plain matrix multiplication in the same run. With
--precision bf16 both sides, and the multiplication, compute in it.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import cyclopts
import numpy as np
import torch
import transformers
from measuring import interleave, measure_spread, print_figures, write_json

from malmoi.objectives.masked import MASKED
from malmoi.systems.bert import PRESETS, Bert
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.loop import BatchSource, cast, train
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import Precision, TrainingOptions
from malmoi.values import IGNORED, Batch

_ROWS, _LENGTH = 32, 128
_PACKAGES = ["torch", "transformers"]
CPU = torch.device("cpu")


def measure_steps(
    *,
    sizes: tuple[str, ...] = ("tiny", "mini", "small", "base"),
    rounds: int = 5,
    dropout: float = 0.1,
    precision: Precision = "fp32",
    json: Path | None = None,
) -> None:
    """Time steps of both sides in turn.

    Args:
        sizes: Presets of BERT.
        dropout: Of hidden states and of attention, on both sides.
        precision: Of both sides.
        json: Where to write the figures.
    """
    rows, figures = [], {}
    for size in sizes:
        batch = make_batch(PRESETS[f"bert-{size}"].vocab_size)
        steps = {"tiny": 8, "mini": 4}.get(size, 2)
        # A process a side: malmoi changes how its process allocates memory, which is none of the other's business.
        processes = {name: _PROCESSES.Pool(1, _start_side, (name, size, batch, dropout, precision)) for name in _SIDES}
        seconds = interleave(
            {name: partial(pool.apply, _run_side, (steps,)) for name, pool in processes.items()}, rounds
        )
        for pool in processes.values():
            pool.terminate()
        gemm = measure_gemm(precision)
        ours, theirs = (measure_spread(1000 * one for one in seconds[name]) for name in ("malmoi", "transformers"))
        ratio = statistics.median(seconds["transformers"]) / statistics.median(seconds["malmoi"])
        share = count_operations(size) / statistics.median(seconds["malmoi"]) / gemm
        figures[size] = {"malmoi_ms": asdict(ours), "transformers_ms": asdict(theirs), "ratio": ratio, "share": share}
        rows.append([size, f"{ours:.0f}", f"{theirs:.0f}", f"{ratio:.2f}×", f"{gemm / 1e9:.0f}", f"{share:.0%}"])
    print_figures(
        ["BERT", "malmoi, ms", "transformers, ms", "ratio", "GEMM, GFLOP/s", "malmoi's share of it"],
        rows,
        packages=_PACKAGES,
    )
    write_json(json, figures, packages=_PACKAGES)


def make_batch(vocab_size: int) -> Batch:
    random = np.random.default_rng(0)
    ids = random.integers(1000, vocab_size, (_ROWS, _LENGTH))
    chosen = np.argsort(random.random((_ROWS, _LENGTH)), axis=1) < 19
    types = np.repeat((np.arange(_LENGTH) >= _LENGTH // 2)[None], _ROWS, axis=0).astype(np.int64)
    return Batch(ids, types, None, np.where(chosen, ids, IGNORED), random.integers(0, 2, _ROWS))


def step_malmoi(size: str, batch: Batch, dropout: float, precision: Precision) -> Callable[[], object]:
    config = replace(PRESETS[f"bert-{size}"], hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    keep_buffers()  # as `malmoi pretrain` does
    model = Bert(config)
    options = TrainingOptions(steps=10**9, batch_size=_ROWS, lr=1e-4, precision=precision)

    class Same(BatchSource[Batch]):
        def batch(self, step: int, positions: object) -> Batch:
            return batch

        def locate(self, step: int) -> str:
            return "the same batch at every step"

    world = World(0, 1, CPU)
    steps = train(
        model,
        Optimizer(model, options, world),
        Same(),
        MASKED.task,
        Course(options),
        world,
        seed=0,
    )
    return lambda: next(steps)


def step_transformers(size: str, batch: Batch, dropout: float, precision: Precision) -> Callable[[], object]:
    preset = PRESETS[f"bert-{size}"]
    fields = {name: getattr(preset, name) for name in preset.__dataclass_fields__}
    fields |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    model = transformers.BertForPreTraining(transformers.BertConfig(**fields, attn_implementation="sdpa"))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    inputs = {
        "input_ids": torch.from_numpy(batch.input_ids),
        "token_type_ids": torch.from_numpy(batch.token_type_ids),
        "labels": torch.from_numpy(batch.labels),
        "next_sentence_label": torch.from_numpy(batch.next_sentence_label),
    }

    def step() -> None:
        with cast(precision, CPU):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


_SIDES = {"malmoi": step_malmoi, "transformers": step_transformers}
_PROCESSES = multiprocessing.get_context("spawn")
_step: Callable[[], object]


def _start_side(name: str, size: str, batch: Batch, dropout: float, precision: Precision) -> None:
    global _step
    _step = _SIDES[name](size, batch, dropout, precision)
    _step()  # the first step allocates what the others reuse


def _run_side(count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        _step()
    return (time.perf_counter() - began) / count


def count_operations(size: str) -> float:
    """Multiplications and additions of the matrix products of a step: forward, and twice as many backward."""
    config = PRESETS[f"bert-{size}"]
    hidden, tokens = config.hidden_size, _ROWS * _LENGTH
    layer = 2 * tokens * (4 * hidden**2 + 2 * hidden * config.intermediate_size) + 4 * tokens * _LENGTH * hidden
    head = 2 * _ROWS * 19 * (hidden**2 + hidden * config.vocab_size)
    return 3.0 * (config.num_hidden_layers * layer + head)


def measure_gemm(precision: Precision) -> float:
    """Operations a second of a large matrix product."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    first, second = torch.randn(2048, 2048, dtype=dtype), torch.randn(2048, 2048, dtype=dtype)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        first @ second
        seconds.append(time.perf_counter() - began)
    return 2 * 2048**3 / min(seconds)


if __name__ == "__main__":
    cyclopts.run(measure_steps)
