"""What the examples of an objective look like in numbers: shares, lengths, padding, pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from malmoi.objectives.examples import Examples, Integers
from malmoi.objectives.options import ExampleOptions
from malmoi.values import IGNORED, Batch

# Less than this part of the share asked for is worth a word.
_ENOUGH = 0.9


@dataclass(frozen=True)
class ExampleStatistics:
    """Shares are parts of one; `padding` is that of positions lost to padding each batch to its longest."""

    examples: int
    epoch_size: int
    mean_length: float
    shortest: int
    longest: int
    full_length: float
    padding: float
    predictions_per_example: float
    without_predictions: float
    selected: float
    wanted: float  # what would be selected if words were never too long
    masked: float
    random: float
    kept: float
    selected_at_specials: int
    random_next: float | None


def measure_examples(examples: Examples, count: int, batch_size: int) -> ExampleStatistics:
    """Statistics over the first `count` examples of a run, made in the batches the run would make."""
    tokenizer = examples.store.tokenizer
    separators = [id_ for id_ in (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id) if id_ is not None]
    lengths: list[Integers] = []
    random_next: list[Integers] = []
    positions = selected = masked = kept = at_specials = empty = 0
    for step in range(-(-count // batch_size)):
        batch = examples.batch(step, batch_size)
        chosen = batch.labels != IGNORED
        lengths.append(_lengths(batch))
        positions += batch.input_ids.size
        selected += int(chosen.sum())
        empty += int((~chosen.any(axis=1)).sum())
        masked += int((batch.input_ids[chosen] == tokenizer.mask_id).sum())
        kept += int((batch.input_ids[chosen] == batch.labels[chosen]).sum())
        at_specials += int(np.isin(batch.labels[chosen], separators).sum())
        if batch.next_sentence_label is not None:
            random_next.append(batch.next_sentence_label)
    length = np.concatenate(lengths)
    return ExampleStatistics(
        examples=len(length),
        epoch_size=examples.epoch_size,
        mean_length=float(length.mean()),
        shortest=int(length.min()),
        longest=int(length.max()),
        full_length=float((length == examples.options.seq_len).mean()),
        padding=1 - float(length.sum()) / positions,
        predictions_per_example=selected / len(length),
        without_predictions=empty / len(length),
        selected=selected / int(length.sum()),
        wanted=int(examples.masking.count(length).sum()) / int(length.sum()),
        masked=masked / max(selected, 1),
        random=(selected - masked - kept) / max(selected, 1),
        kept=kept / max(selected, 1),
        selected_at_specials=at_specials,
        random_next=float(np.concatenate(random_next).mean()) if random_next else None,
    )


def doubt_share(statistics: ExampleStatistics, options: ExampleOptions) -> str | None:
    """A sentence for a person where clearly fewer tokens are to be predicted than the options say."""
    found, asked = statistics.selected, options.mask_share
    if found < _ENOUGH * statistics.wanted:
        cause = "its words are too long to be masked whole, as in text without spaces; leave out --whole-words"
    elif found < _ENOUGH * asked and options.max_predictions is not None:
        cause = f"--max-predictions {options.max_predictions} allows no more; leave it out"
    else:
        return None
    return (
        f"of sequences of {options.seq_len}, {found:.1%} of the tokens are to be predicted, not {asked:.1%}: {cause}."
    )


def _lengths(batch: Batch) -> Integers:
    if batch.attention_mask is None:
        return np.full(len(batch.input_ids), batch.input_ids.shape[1])
    return np.asarray(batch.attention_mask.sum(axis=1), dtype=np.int64)
