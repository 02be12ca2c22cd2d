"""What is worth knowing of a run, in words: for the report and for the model card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malmoi.data.store import Store
from malmoi.objectives.examples import Examples
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.statistics import measure_examples
from malmoi.training.options import TrainingOptions

if TYPE_CHECKING:
    from malmoi.checkpoint.bundle import Bundle

_EXAMPLES = 1000


def describe_training(
    bundle: Bundle, examples: ExampleOptions, training: TrainingOptions, steps: int, log: list[dict[str, Any]]
) -> dict[str, str]:
    """The model, and how it was trained."""
    seconds, tokens = (sum(record[name] for record in log) for name in ("seconds", "tokens"))
    return {
        "parameters": f"{sum(parameter.numel() for parameter in bundle.model.parameters()):,}",
        "objective": examples.objective + (", whole words" if examples.whole_words else ""),
        "steps": f"{steps:,} of {training.batch_size} sequences of {examples.seq_len}"
        + (f", in the end of {training.long_seq_len}" if training.long_seq_len else ""),
        "time": f"{seconds / 60:.1f} minutes, {seconds / max(len(log), 1):.3f} seconds a step",
        "tokens": f"{tokens:,}, {tokens / max(seconds, 1e-9):,.0f} a second",
    }


def describe_data(
    learned: Store, held_out: Store | None, examples: ExampleOptions, training: TrainingOptions, steps: int
) -> dict[str, str]:
    """The text it was trained on, and what was made of it."""
    documents, sentences, tokens = _count(learned)
    shown = measure_examples(Examples(learned, examples), _EXAMPLES, training.batch_size)
    facts = {
        "trained on": f"{tokens:,} tokens, {sentences:,} sentences, {documents:,} documents",
        "held out": "nothing",
        "vocabulary": f"{learned.manifest.vocab_size:,} pieces",
        "unknown tokens": f"{learned.manifest.unknown_tokens / learned.manifest.tokens:.2%}",
        "epochs": f"{steps * training.batch_size / shown.epoch_size:.1f} of {shown.epoch_size:,} examples",
        "to be predicted": f"{shown.selected:.1%} of the tokens: {shown.masked:.0%} masked, {shown.random:.0%} random, "
        f"{shown.kept:.0%} kept",
        "padding": f"{shown.padding:.1%}",
    }
    if held_out is not None:
        documents, _, tokens = _count(held_out)
        facts["held out"] = f"{tokens:,} tokens, {documents:,} documents"
    if shown.random_next is not None:
        facts["random next sentences"] = f"{shown.random_next:.1%}"
    return facts


def _count(store: Store) -> tuple[int, int, int]:
    """Documents, sentences and tokens of the documents that are chosen."""
    begins, ends = store.document_begins, store.document_ends
    tokens = store.sentences[ends] - store.sentences[begins]
    return len(begins), int((ends - begins).sum()), int(tokens.sum())
