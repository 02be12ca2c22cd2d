"""malmoi demo"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from malmoi.text.reading import ReadOptions

if TYPE_CHECKING:
    from malmoi.data.store import Store
    from malmoi.text.reading import Corpus
    from malmoi.text.tokenizer import Tokenizer

_VOCAB_SIZE = 4000
_HELD_OUT = 0.05


def demo(
    files: Annotated[list[str] | None, Parameter(help="Your own text; by default Python's documentation.")] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for what the demo makes.")] = Path("malmoi-demo"),
    steps: Annotated[int, Parameter(help="How long the model is trained.")] = 1400,
    reading: ReadOptions | None = None,
) -> None:
    """Follow text on its way: check, tokenizer, store, examples, a small BERT and what it has learned."""
    from malmoi.cli.inspect import print_examples, print_statistics
    from malmoi.cli.tokenizer import train
    from malmoi.data.prepare import prepare_store
    from malmoi.data.store import Store
    from malmoi.demo.documentation import write_documentation
    from malmoi.objectives.examples import Examples
    from malmoi.objectives.options import ExampleOptions
    from malmoi.objectives.statistics import measure_examples
    from malmoi.text.reading import Corpus
    from malmoi.text.sources import keep_standard_input
    from malmoi.text.tokenizer import load_tokenizer

    _say("1. Text", "what is there to learn from?")
    if not files:
        files = [str(write_documentation(out / "python-documentation.jsonl"))]
    keep_standard_input(files)
    _check(Corpus(files, reading))

    _say("2. Tokenizer", f"words become pieces, {_VOCAB_SIZE:,} of them learned from the text")
    train(files, out=out / "tokenizer", vocab_size=_VOCAB_SIZE, reading=reading)
    tokenizer = load_tokenizer(out / "tokenizer")
    sentences = _find_two_sentences(Corpus(files, reading))
    print("\nTwo sentences of the text as BERT sees them:")
    _print_input(tokenizer, *sentences)

    _say("3. Store", "all tokens on disk, with the bounds of words, sentences and documents")
    manifest, _ = prepare_store(Corpus(files, reading), tokenizer, out / "store")
    print(
        f"{manifest.documents:,} documents, {manifest.sentences:,} sentences, {manifest.tokens:,} tokens "
        f"in {out / 'store'}"
    )

    _say("4. Examples", "which words are hidden, and does the second segment follow the first?")
    examples = Examples(Store(out / "store"), ExampleOptions(whole_words=True))
    print_examples(examples.batch(0, 32), tokenizer, 2, 0)
    print_statistics(measure_examples(examples, 10_000, 32), examples.store)

    _say("5. Training", f"a small BERT learns to restore hidden words, {steps:,} steps")
    _train(examples.store, tokenizer, out / "run", steps)


def _train(store: Store, tokenizer: Tokenizer, out: Path, steps: int) -> None:
    import torch

    from malmoi.catalog import find_objective
    from malmoi.data.holdout import split_store
    from malmoi.demo.words import compare_contexts
    from malmoi.objectives.baseline import measure_unigram_loss
    from malmoi.objectives.options import ExampleOptions
    from malmoi.pretrained import create
    from malmoi.progress import progress
    from malmoi.training.distributed import World
    from malmoi.training.fills import fill_held_out
    from malmoi.training.log import read_log
    from malmoi.training.options import TrainingOptions
    from malmoi.training.pretraining import evaluation_batches, pretrain

    examples = ExampleOptions(seq_len=64)
    training = TrainingOptions(
        steps=steps, lr=2e-3, eval_every=max(1, steps // 4), eval_share=_HELD_OUT, save_every=max(1, steps // 2)
    )
    bert = create("bert-tiny", tokenizer)
    world = World(0, 1, torch.device("cpu"))
    with progress("training", steps, "steps") as show:
        for one in pretrain(store, bert, out, examples, training, world, model_name="bert-tiny", tell=print):
            show(one.step.step + 1)
    learned, held_out = split_store(store, _HELD_OUT, examples.seed)
    if held_out is None:
        print("There are too few documents to hold some out, so there is nothing to measure it on.")
    else:
        objective = find_objective(bert.system, examples.objective)
        batches = list(evaluation_batches(objective, held_out, examples, training))
        print("On documents it has never seen, a hidden word costs it, in nats, and it guesses:")
        print(f"  by word frequency  {measure_unigram_loss(learned, batches):.3f}")
        for record in read_log(out):
            if "evaluation" in record:
                loss, accuracy = (record["evaluation"][f"mlm_{name}"] for name in ("loss", "accuracy"))
                print(f"  after {record['step'] + 1:>5,} steps  {loss:.3f}  {accuracy:4.0%}")
        print()
        print("What it puts into gaps of them (the word that stood there is in brackets):")
        for gap in fill_held_out(bert, batches[0], 6):
            guesses = ", ".join(f"{token} {share:.0%}" for token, share in gap.guesses)
            print(f"  {gap.before} [{gap.truth}] {gap.after}\n    → {guesses}")
    for word in compare_contexts(bert, store):
        print(f"\nNear “{word.word}” in “{word.context}”:\n  {', '.join(word.nearest)}")
    print(f"\nThe model: {out / 'model'}   How it went: {out / 'report.html'}")


def _say(title: str, question: str) -> None:
    from rich.console import Console

    Console(highlight=False).print(f"\n[bold]{title}[/] — {question}\n")


def _check(corpus: Corpus) -> None:
    from malmoi.progress import progress
    from malmoi.text.checking import check_corpus
    from malmoi.text.sentences import sentence_splitter

    with progress("reading", corpus.total_bytes, "B") as show:
        report = check_corpus(corpus, sentence_splitter("rules"), show)
    scripts = sorted(report.scripts.items(), key=lambda item: -item[1])[:4]
    print(f"{report.documents:,} documents, {report.sentences:,} sentences, {report.words:,} words")
    print("characters: " + ", ".join(f"{name} {count / report.characters:.0%}" for name, count in scripts))
    print(report.verdict)


def _find_two_sentences(corpus: Corpus) -> tuple[str, str]:
    """Two neighbouring sentences short enough for a terminal, or the first two there are."""
    from malmoi.text.sentences import sentence_splitter

    split = sentence_splitter("rules")
    first: tuple[str, str] | None = None
    for document, _ in zip(corpus, range(1000), strict=False):
        sentences = split(document.text)
        for a, b in pairwise(sentences):
            first = first or (a[:60], b[:60])
            if 10 < len(a) < 40 and 10 < len(b) < 40:
                return a, b
    return first or ("", "")


def _print_input(tokenizer: Tokenizer, first: str, second: str) -> None:
    encoded = tokenizer.encode(first, second)
    _print_aligned(
        {
            "tokens": [tokenizer.token(id_) for id_ in encoded.ids],
            "input_ids": list(map(str, encoded.ids)),
            "token_type_ids": list(map(str, encoded.token_type_ids)),
            "position_ids": list(map(str, range(len(encoded.ids)))),
        }
    )


def _print_aligned(rows: dict[str, list[str]]) -> None:
    """Print rows under each other, cell by cell, folded to the terminal's width."""
    from rich.cells import cell_len
    from rich.console import Console

    # Hangul and Han take two columns of a terminal, so lengths are counted in columns.
    widths = [max(map(cell_len, column)) for column in zip(*rows.values(), strict=True)]
    title = max(map(len, rows)) + 2
    begin = 0
    while begin < len(widths):
        end, used = begin, title
        while end < len(widths) and (end == begin or used + widths[end] + 1 <= Console().width):
            used += widths[end] + 1
            end += 1
        for name, cells in rows.items():
            padded = (cells[place] + " " * (widths[place] - cell_len(cells[place])) for place in range(begin, end))
            print(f"{name:<{title}}" + " ".join(padded).rstrip())
        print()
        begin = end
