"""malmoi inspect"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from malmoi.objectives.options import ExampleOptions

if TYPE_CHECKING:
    from rich.text import Text

    from malmoi.data.store import Store
    from malmoi.objectives.statistics import ExampleStatistics
    from malmoi.text.tokenizer import Tokenizer
    from malmoi.values import Batch

_MASKED, _RANDOM, _KEPT = "white on red", "black on yellow", "black on green"


def inspect(
    store: Annotated[Path, Parameter(help="A store made by malmoi prepare.")],
    /,
    *,
    options: ExampleOptions | None = None,
    batch_size: Annotated[int, Parameter(help="Sequences of a batch.")] = 32,
    step: Annotated[int, Parameter(help="The step whose batch is shown.")] = 0,
    show: Annotated[int, Parameter(help="How many examples of it are shown.")] = 3,
    eval_share: Annotated[float, Parameter(help="Leave out the documents that pretrain would hold out.")] = 0.0,
    examples: Annotated[int, Parameter(help="How many examples the statistics are taken over.")] = 10_000,
    tokenizer: Annotated[str | None, Parameter(help="Check that the store belongs to this tokenizer.")] = None,
    reference: Annotated[
        bool, Parameter(negative="", help="Build as the published builder does, and print a digest to compare by.")
    ] = False,
    json: Annotated[bool, Parameter(negative="", help="Print statistics and examples as JSON.")] = False,
) -> None:
    """Show what a model would be trained on: decoded examples with their masks, and statistics."""
    from malmoi.data.holdout import require_share, split_store
    from malmoi.data.store import Store
    from malmoi.errors import MalmoiError
    from malmoi.objectives.examples import Examples
    from malmoi.objectives.statistics import doubt_share, measure_examples
    from malmoi.text.tokenizer import load_tokenizer

    options = options or ExampleOptions()
    numbers = (("batch-size", batch_size, 1), ("step", step, 0), ("show", show, 0), ("examples", examples, 1))
    for name, value, least in numbers:
        if value < least:
            raise MalmoiError(f"--{name} {value}: give a whole number from {least} on.")
    require_share(eval_share)
    opened = Store(store)
    if tokenizer is not None:
        opened.require_tokenizer(load_tokenizer(tokenizer))
    if reference:
        _show_reference(opened, options)
        return
    if eval_share:
        opened, _ = split_store(opened, eval_share, options.seed)
    made = Examples(opened, options)
    batch = made.batch(step, batch_size)
    statistics = measure_examples(made, examples, batch_size)
    if json:
        _print_json(batch, statistics, opened.tokenizer, show)
    else:
        print_examples(batch, opened.tokenizer, show, step)
        print_statistics(statistics, opened)
    doubt = doubt_share(statistics, options)
    if doubt is not None:
        print(f"malmoi: {doubt}", file=sys.stderr)


def _show_reference(store: Store, options: ExampleOptions) -> None:
    from malmoi.objectives.reference import build_reference, digest_instances

    instances = build_reference(store, options)
    tokens = sum(len(one.tokens) for one in instances)
    labels = sum(len(one.masked_labels) for one in instances)
    print(f"instances     {len(instances):,}")
    print(f"mean length   {tokens / len(instances):.2f}")
    print(f"selected      {labels / tokens:.4f}")
    print(f"random next   {sum(one.is_random_next for one in instances) / len(instances):.4f}")
    print(f"sha256        {digest_instances(instances)}")


def _print_json(batch: Batch, statistics: ExampleStatistics, tokenizer: Tokenizer, show: int) -> None:
    import json
    from dataclasses import asdict

    print(
        json.dumps(
            {
                "statistics": asdict(statistics),
                "examples": [_describe(batch, row, tokenizer) for row in range(min(show, len(batch.input_ids)))],
            },
            ensure_ascii=False,
            indent=1,
        )
    )


def _describe(batch: Batch, row: int, tokenizer: Tokenizer) -> dict[str, Any]:
    from malmoi.values import IGNORED

    length = _length(batch, row)
    labels = batch.labels[row, :length]
    return {
        "tokens": [tokenizer.token(int(id_)) for id_ in batch.input_ids[row, :length]],
        "token_type_ids": batch.token_type_ids[row, :length].tolist(),
        "labels": {
            str(position): tokenizer.token(int(label)) for position, label in enumerate(labels) if label != IGNORED
        },
        "next_sentence_label": None if batch.next_sentence_label is None else int(batch.next_sentence_label[row]),
    }


def _length(batch: Batch, row: int) -> int:
    return batch.input_ids.shape[1] if batch.attention_mask is None else int(batch.attention_mask[row].sum())


def print_examples(batch: Batch, tokenizer: Tokenizer, show: int, step: int) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    console.print(
        f"[{_MASKED}] [MASK] [/] masked   [{_RANDOM}] piece [/] replaced at random   [{_KEPT}] piece [/] kept; "
        "after each, in brackets, what is to be predicted\n"
    )
    for row in range(min(show, len(batch.input_ids))):
        pair = ""
        if batch.next_sentence_label is not None:
            pair = ", B is random" if batch.next_sentence_label[row] else ", B follows A"
        console.print(f"[bold]step {step}, example {row}[/]: {_length(batch, row)} tokens{pair}")
        console.print(_colour(batch, row, tokenizer), end="\n\n")


def _colour(batch: Batch, row: int, tokenizer: Tokenizer) -> Text:
    from rich.text import Text

    from malmoi.values import IGNORED

    text = Text()
    for position in range(_length(batch, row)):
        id_, label = int(batch.input_ids[row, position]), int(batch.labels[row, position])
        token = tokenizer.token(id_)
        if label == IGNORED:
            special = id_ in (tokenizer.cls_id, tokenizer.sep_id)
            text.append(token, style="bold cyan" if special else "")
        else:
            masked, kept = id_ == tokenizer.mask_id, id_ == label
            text.append(token, style=_MASKED if masked else _KEPT if kept else _RANDOM)
            text.append(f"({tokenizer.token(label)})", style="dim")
        text.append(" ")
    return text


def print_statistics(statistics: ExampleStatistics, store: Store) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("statistics", "", show_edge=False, pad_edge=False)
    table.add_row("examples measured", f"{statistics.examples:,}")
    table.add_row("examples in an epoch", f"{statistics.epoch_size:,}")
    table.add_row(
        "length",
        f"{statistics.mean_length:.1f} on average, {statistics.shortest} to {statistics.longest}, "
        f"{statistics.full_length:.1%} full",
    )
    table.add_row("padding", f"{statistics.padding:.2%}")
    table.add_row("predictions an example", f"{statistics.predictions_per_example:.2f}")
    if statistics.without_predictions:
        table.add_row("without a prediction", f"{statistics.without_predictions:.1%} of the examples")
    table.add_row("selected", f"{statistics.selected:.2%} of the tokens")
    fates = (statistics.masked, statistics.random, statistics.kept)
    table.add_row("masked / random / kept", " / ".join(f"{share:.1%}" for share in fates))
    table.add_row("selected at [CLS] or [SEP]", f"{statistics.selected_at_specials}")
    if statistics.random_next is not None:
        table.add_row("random next", f"{statistics.random_next:.1%}")
        if store.manifest.documents == 1:
            table.add_row("look out", "the store has one document: random segments come from that document itself")
    Console(highlight=False).print(table)
