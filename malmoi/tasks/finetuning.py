"""A fine-tuning run: examples and a model → the folder of a run (training/run.py), with the best model in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from malmoi import __version__
from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.bundle import Bundle
from malmoi.errors import MalmoiError
from malmoi.tasks.batches import TaskBatches
from malmoi.tasks.best import BestWeights
from malmoi.tasks.columns import TaskName
from malmoi.tasks.digests import digest_examples, digest_items, digest_weights
from malmoi.tasks.embedding import Embedding
from malmoi.tasks.inference import predict
from malmoi.tasks.kind import Kind
from malmoi.tasks.kinds import choose_kind, find_seq_len, find_vector_len
from malmoi.tasks.lengths import describe_cut, fit_seq_len
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.ragged import Items
from malmoi.tasks.reading import require_known_labels, require_trainable
from malmoi.tasks.report import Judgement, write_task_report
from malmoi.training.distributed import World
from malmoi.training.log import read_log
from malmoi.training.loop import plan_rows
from malmoi.training.memory import keep_buffers
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import FREE, TrainingOptions
from malmoi.training.run import Ending, Interrupted, Progress, follow_run, open_run, place_model

_MISTAKES = 30
_FREE = frozenset(f"{section}.{name}" for section in ("options", "training") for name in FREE)
_LAYER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True)
class TaskData:
    """Examples to learn from and, if there are some, others to judge by (`dev`)."""

    task: TaskName
    examples: Sequence[Any]
    dev: Sequence[Any] = ()
    multi_label: bool = False


@dataclass(frozen=True)
class Finetuning:
    """All that a run consists of, ready to be made."""

    task: TaskName
    kind: Kind[Any, Any]
    bundle: Bundle
    batches: TaskBatches
    training: TrainingOptions
    options: FinetuningOptions
    dev: Sequence[Any]
    description: dict[str, Any]

    @cached_property
    def dev_items(self) -> Items | None:
        """The examples held out as the model is shown them: encoded once, for all evaluations."""
        return self.kind.encode_all(self.dev) if self.dev else None


def prepare_finetuning(
    data: TaskData,
    bundle: Bundle,
    options: FinetuningOptions,
    world: World,
    *,
    model_name: str,
    tell: Callable[[str], None],
) -> Finetuning:
    """Fit the model with its head and encode the examples. Whatever is wrong is said here, before a run begins."""
    task, examples, dev = data.task, data.examples, data.dev
    require_trainable(examples)
    chosen = choose_kind(task, examples, multi_label=data.multi_label)
    if chosen.guess:
        tell(chosen.guess)
    if options.metric not in (None, *chosen.metrics):
        raise MalmoiError(f"--metric {options.metric}: the figures of {task} are {', '.join(chosen.metrics)}.")
    if (options.metric is not None or options.patience is not None) and not dev:
        raise MalmoiError("--metric and --patience judge by examples held out; give some with --dev.")
    weights = digest_weights(bundle)
    kind = _fit_head(chosen, task, examples, bundle, options, tell)
    if kind.head is not None:
        require_known_labels(dev, kind.head.labels)
    if kind.compares_examples() and (options.micro_batch not in (None, options.batch_size) or world.size > 1):
        raise MalmoiError(
            "Pairs without scores are learned by comparing all pairs of a batch with each other; leave --micro-batch "
            "out, and run one process."
        )
    # Notes are for whoever interprets outputs.
    items = replace(kind.encode_all(examples), notes=None)
    if items.shrunk:
        tell(f"{items.shrunk:,} answers begin or end in what is no token (a space, U+200B); those ends are left out.")
    if cut := describe_cut(kind.lengths, kind.seq_len, bundle.config.max_position_embeddings):
        tell(cut)
    pad_id = bundle.tokenizer.pad_id or 0
    batches = TaskBatches(items, options.batch_size, pad_id, options.seed, together=kind.compares_examples())
    training = options.plan(batches.steps_an_epoch, bundle.config.hidden_size)
    plan_rows(training, world)
    description = {
        "malmoi": __version__,
        "task": task,
        "model": model_name,
        "system": bundle.system,
        "architecture": asdict(bundle.config),
        "labels": [] if kind.head is None else list(kind.head.labels),
        "weights": weights,
        "data": {"count": len(examples), "digest": digest_items(items)},
        "dev": {"count": len(dev), "digest": digest_examples(dev)},
        "seq_len": kind.seq_len,
        "options": asdict(options),
        "training": asdict(training),
    }
    return Finetuning(task, kind, bundle, batches, training, options, dev, description)


def finetune(run: Finetuning, out: Path, world: World, *, tell: Callable[[str], None]) -> Iterator[Progress]:
    """Train in the folder `out`, from its newest good checkpoint on; at the end `out/model` holds the best model."""
    keep_buffers()
    kind, bundle, options = run.kind, run.bundle, run.options
    with open_run(out, run.description, _FREE, run.training, world, tell) as folder:
        model = place_model(bundle.model, run.training, world)
        _freeze(bundle, kind, options)
        optimizer = Optimizer(model, run.training, world, _share_rates(bundle, options))
        best = BestWeights(folder, options.metric or kind.metric, options.patience)

        def evaluate(steps: int) -> dict[str, float]:
            figures = measure(kind, model, run.dev, world, options, run.dev_items)
            best.note(steps, figures, model)
            return figures

        ending = yield from follow_run(
            folder,
            model,
            optimizer,
            run.batches,
            kind.task,
            seed=options.seed,
            evaluate=evaluate if run.dev else None,
            tell=tell,
            has_enough=best.has_enough,
        )
        world.wait()
        kept = best.restore(model) if run.dev else None
        model.eval()
        if world.is_first:
            _finish(run, out, world, ending, kept or ending.steps)
        world.wait()
        if ending.signal:
            raise Interrupted(ending)


def measure(
    kind: Kind[Any, Any],
    model: nn.Module,
    examples: Sequence[Any],
    world: World,
    options: FinetuningOptions,
    items: Items | None = None,
) -> dict[str, float]:
    """The figures of a model on examples; every rank computes them all, so that all agree."""
    figures = kind.measure(examples, predict(kind, model, examples, world.device, options.precision, items=items))
    # A correlation with something constant is not defined; nothing was learned then.
    return {name: value if math.isfinite(value) else 0.0 for name, value in figures.items()}


def _fit_head(
    chosen: type[Kind[Any, Any]],
    task: TaskName,
    examples: Sequence[Any],
    bundle: Bundle,
    options: FinetuningOptions,
    tell: Callable[[str], None],
) -> Kind[Any, Any]:
    head = chosen.make_head(examples, options)
    wanted = options.seq_len
    if wanted is None and not chosen.reads_windows:
        wanted = fit_seq_len(bundle.tokenizer, examples, bundle.config.max_position_embeddings, apart=task == "embed")
    seq_len = find_seq_len(bundle, task, wanted)
    if head is None:
        if bundle.head is not None:
            bundle.change_head(None, options.seed)
        if bundle.sentence is not None:
            seq_len = find_vector_len(bundle, options.seq_len)
        kind = chosen(bundle.tokenizer, None, seq_len)
        if isinstance(kind, Embedding):
            # What the model learns with is what its folder will say.
            kind.use_folder(bundle.sentence)
            bundle.sentence = kind.sentence
            scores = [one.score for one in examples if one.score is not None]
            kind.highest, kind.scale = max([1.0, *scores]), options.scale
        return kind
    if head.shape not in SYSTEMS[bundle.system].task_heads:
        raise MalmoiError(f"{bundle.system} is not made for the task {task}.")
    head = replace(head, task=task, settings={**head.settings, "seq_len": seq_len})
    bundle.change_head(head, options.seed)
    is_fresh = "task_head" in bundle.absent
    if is_fresh:
        tell(f"the model has no head for {task} on these examples; it starts from fresh weights.")
    kind = chosen(bundle.tokenizer, head, seq_len)
    kind.start(bundle.model, examples, is_fresh=is_fresh)
    return kind


def _freeze(bundle: Bundle, kind: Kind[Any, Any], options: FinetuningOptions) -> None:
    """Let only those weights learn that are to: all that the task uses, or with --freeze those that are new."""
    unused = set(SYSTEMS[bundle.system].heads) if kind.head is None else set()
    if options.freeze and kind.head is None:
        raise MalmoiError("--freeze trains the head alone, and embed has none; leave it out.")
    learning = {"task_head", *bundle.absent}
    for name, parameter in bundle.model.named_parameters():
        part = name.partition(".")[0]
        parameter.requires_grad_(part not in unused and (not options.freeze or part in learning))


def _share_rates(bundle: Bundle, options: FinetuningOptions) -> Callable[[str], float]:
    """The part of the learning rate for each weight: less with every layer further from the head."""
    layers = bundle.config.num_hidden_layers

    def share(name: str) -> float:
        found = _LAYER.match(name)
        if found:
            return float(options.layer_decay ** (layers - int(found[1])))
        return float(options.layer_decay ** (layers + 1)) if name.startswith("embeddings.") else 1.0

    return share


def _finish(run: Finetuning, out: Path, world: World, ending: Ending, kept: int) -> None:
    """Write `out/model`, which is the model after `kept` steps, and `out/report.html`."""
    kind, bundle, log = run.kind, run.bundle, read_log(out)
    kind.finish(bundle.model)
    facts = ending.describe() | {
        "task": run.task,
        "learned from": f"{run.description['data']['count']:,} examples",
        "steps": f"{ending.steps:,} of {run.training.batch_size} examples",
    }
    judgement = Judgement(kept)
    if run.dev:
        predictions = predict(kind, bundle.model, run.dev, world.device, run.options.precision, items=run.dev_items)
        figures = kind.measure(run.dev, predictions)
        facts["kept"] = f"the model after step {kept:,}, which did best on the examples held out"
        facts |= {f"held out: {name.replace('_', ' ')}": f"{value:.4f}" for name, value in figures.items()}
        found = (kind.find_mistake(one, other) for one, other in zip(run.dev, predictions, strict=True))
        mistakes = sorted((one for one in found if one is not None), key=lambda one: -one.badness)[:_MISTAKES]
        judgement = Judgement(kept, figures, kind.confuse(run.dev, predictions), mistakes)
    # What was fresh has been trained; the heads of pre-training do not fit an encoder that has learned something else.
    parts = {part for form in SYSTEMS[bundle.system].task_heads.values() for part in form.needs}
    unfit = SYSTEMS[bundle.system].heads.keys() - parts if kind.head is None else set[str]()
    bundle.absent = frozenset(unfit | (bundle.absent & parts if kind.head is None else set()))
    bundle.save(out / "model", facts)
    config = json.loads((out / "config.json").read_text("utf-8"))
    write_task_report(out, log, facts, judgement, config, ending.warn())
