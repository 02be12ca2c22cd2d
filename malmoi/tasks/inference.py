"""Examples → predictions: computed in batches of like length, given back in their own order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from malmoi.features.onnx_engine import OnnxEngine
from malmoi.tasks.examples import Asked
from malmoi.tasks.kind import Kind
from malmoi.tasks.ragged import Items, TaskBatch, cut_batch
from malmoi.training.options import Precision

if TYPE_CHECKING:
    import torch

_TOKENS_AT_ONCE = 2048  # more would not fit into a processor's caches
_EXAMPLES_AT_ONCE = 2048
# Called with the share that is done.
Show = Callable[[float], None]
Compute = Callable[[TaskBatch], NDArray[np.float32]]


def _show_nothing(share: float) -> None:
    pass


def run_items(
    kind: Kind[Any, Any],
    model: Any,
    items: Items,
    device: torch.device | None,
    precision: Precision = "fp32",
    show: Show = _show_nothing,
) -> list[NDArray[np.float32]]:
    """The outputs of each item."""
    done = 0
    outputs: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(items)
    pad_id = kind.tokenizer.pad_id or 0
    with _open_computer(kind, model, device, precision) as compute:
        for chosen in _cut_by_length(items):
            for item, row in zip(chosen, compute(cut_batch(items, chosen, pad_id)), strict=True):
                outputs[item] = row
            done += len(chosen)
            show(done / len(items))
    return outputs


@contextmanager
def _open_computer(
    kind: Kind[Any, Any], model: Any, device: torch.device | None, precision: Precision
) -> Iterator[Compute]:
    """A batch → the outputs of its items. The model is a module of torch, or an engine that needs no torch."""
    if isinstance(model, OnnxEngine):
        yield partial(kind.compute, model)
        return
    import torch

    from malmoi.training.loop import cast
    from malmoi.training.sharding import put_apart

    place = next(model.parameters()).device if device is None else device

    def compute(batch: TaskBatch) -> NDArray[np.float32]:
        with cast(precision, place):
            rows: NDArray[np.float32] = kind.outputs(model, batch, place).float().cpu().numpy()
        return rows

    was_training = model.training
    model.eval()
    with torch.no_grad():
        yield compute
    model.train(was_training)
    put_apart(model)


def _cut_by_length(items: Items) -> Iterator[NDArray[np.int64]]:
    """Items of like length in batches of so many tokens."""
    order = np.argsort(-items.lengths, kind="stable")
    tokens = items.lengths * np.diff(items.rows)
    begin = 0
    while begin < len(order):
        size = max(1, _TOKENS_AT_ONCE // int(tokens[order[begin]]))
        yield order[begin : begin + size]
        begin += size


def predict(
    kind: Kind[Any, Any],
    model: Any,
    examples: Sequence[Any],
    device: torch.device | None,
    precision: Precision = "fp32",
    show: Show = _show_nothing,
    items: Items | None = None,
) -> list[Any]:
    """A prediction for each example; `items` are those that the kind has made of the examples before."""
    if not examples:
        return []
    items = kind.encode_all(examples) if items is None else items
    return kind.interpret(examples, items, run_items(kind, model, items, device, precision, show))


def predict_blocks(
    kind: Kind[Any, Any], model: Any, rows: Iterable[Asked], device: torch.device | None
) -> Iterator[list[tuple[Asked, Any]]]:
    """Rows with their predictions, in order, however many there are: a block of them at a time. A row without text has
    the prediction None."""
    rows = iter(rows)
    while block := list(islice(rows, _EXAMPLES_AT_ONCE)):
        block = [row if row.example is None else replace(row, example=kind.take(row.example)) for row in block]
        predictions = iter(predict(kind, model, [row.example for row in block if row.example is not None], device))
        yield [(row, None if row.example is None else next(predictions)) for row in block]
