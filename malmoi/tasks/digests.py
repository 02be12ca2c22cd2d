"""What tells the material of a run from any other: what it learns from, what it is judged by, what it starts with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from malmoi.checkpoint.bundle import Bundle
from malmoi.tasks.ragged import Items


def digest_items(items: Items) -> str:
    """Which examples a run learns from, whatever files they came from."""
    digest = hashlib.sha256()
    for array in (items.ids, items.starts, items.rows, items.targets, items.token_targets):
        if array is not None:
            digest.update(array.tobytes())
    return digest.hexdigest()


def digest_examples(examples: Iterable[Any]) -> str:
    """The same for examples that are not encoded (yet)."""
    digest = hashlib.sha256()
    for example in examples:
        content = [getattr(example, field.name) for field in fields(example) if field.name != "place"]
        digest.update(repr(content).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def digest_weights(bundle: Bundle) -> str:
    """The weights that came from files; what is fresh follows from the seed."""
    digest = hashlib.sha256()
    for name, tensor in sorted(bundle.model.state_dict().items()):
        if name.partition(".")[0] not in bundle.absent:
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
