"""What the examples of an objective look like in numbers: shares, lengths, padding, pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from malmoi.objectives.examples import Examples, Integers
from malmoi.values import IGNORED, Batch


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
    selected: float
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
    positions = selected = masked = kept = at_specials = 0
    for step in range(-(-count // batch_size)):
        batch = examples.batch(step, batch_size)
        chosen = batch.labels != IGNORED
        lengths.append(_lengths(batch))
        positions += batch.input_ids.size
        selected += int(chosen.sum())
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
        selected=selected / int(length.sum()),
        masked=masked / max(selected, 1),
        random=(selected - masked - kept) / max(selected, 1),
        kept=kept / max(selected, 1),
        selected_at_specials=at_specials,
        random_next=float(np.concatenate(random_next).mean()) if random_next else None,
    )


def _lengths(batch: Batch) -> Integers:
    if batch.attention_mask is None:
        return np.full(len(batch.input_ids), batch.input_ids.shape[1])
    return np.asarray(batch.attention_mask.sum(axis=1), dtype=np.int64)
