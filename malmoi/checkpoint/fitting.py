"""Fits the tensors of a folder to a model: names, shapes, what is missing, what is left over.

It is decided on names and shapes, before anything of the model's size is allocated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from malmoi.blocks.head import Head
from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.configuration import Configuration
from malmoi.checkpoint.file_names import CONFIG
from malmoi.checkpoint.tensors import StoredTensor
from malmoi.config import to_json
from malmoi.errors import MalmoiError

# Layer norms kept the names of TensorFlow in early files.
_EARLY_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# A buffer 0, 1, 2, … that early versions saved.
_COUNTING_BUFFER = "embeddings.position_ids"
_NAMES_SHOWN = 8


@dataclass(frozen=True)
class Fit:
    """A model without storage, the tensors that will fill it under their names, and which parts nobody gave."""

    skeleton: nn.Module
    tensors: dict[str, StoredTensor]
    fresh: frozenset[str]
    notes: list[str]


def fit_tensors(folder: Path, configuration: Configuration, stored: Mapping[str, StoredTensor]) -> Fit:
    config = configuration.config
    _refuse_absurd_sizes(folder, config, stored)
    _refuse_absurd_labels(folder, configuration.head, stored)
    skeleton = _build_skeleton(folder, configuration)
    system = SYSTEMS[configuration.system]
    optional = {**system.heads, "task_head": "the head for the task"}
    table = system.table(config, configuration.head)
    expected = table.write(skeleton.state_dict())
    part_of = {theirs: row.ours.partition(".")[0] for row in table.rows for theirs in row.theirs}
    # The table begins with the encoder: files of an encoder alone leave this first word of its names out.
    prefix = table.rows[0].theirs[0].partition(".")[0]
    renamed = _merge_tied(_rename(stored, expected, prefix), system.tied)
    for name in sorted(expected.keys() & renamed.keys()):
        _check_shape(renamed[name], tuple(expected[name].shape))
    missing = sorted(expected.keys() - renamed.keys())
    absent = {part_of[name] for name in missing}
    given = {part_of[name] for name in expected.keys() & renamed.keys()}
    for name in missing:
        # A head may be missing, half a head may not: what is there would be of no use.
        if part_of[name] not in optional or part_of[name] in given:
            raise MalmoiError(f"{folder}: the tensor {name} is missing from the weights.")
    notes = [
        f"{words} is not in the files; it starts from fresh weights"
        for part, words in optional.items()
        if part in absent
    ]
    extra = sorted(stored_tensor.name for name, stored_tensor in renamed.items() if name not in expected)
    if extra:
        notes.append(f"tensors that are not used: {_list(extra)}")
    tensors = {name: tensor for name, tensor in renamed.items() if name in expected}
    return Fit(skeleton, tensors, frozenset(absent), notes)


def fill_model(configuration: Configuration, fit: Fit) -> nn.Module:
    """The model with the weights of the files; parts that are missing start as in a new model, always the same."""
    system = SYSTEMS[configuration.system]
    read: dict[str, Tensor] = {name: tensor.read() for name, tensor in fit.tensors.items()}
    tensors = system.table(configuration.config, configuration.head).read(read, fit.skeleton.state_dict()).tensors
    # Only what the files lack is drawn at random: drawing everything would take longer than reading the files.
    with _seed(0):
        for part in sorted(fit.fresh):
            _initialise_part(fit.skeleton, part)
    fit.skeleton.load_state_dict(tensors, strict=not fit.fresh, assign=True)
    return fit.skeleton


def build_model(system: str, config: object, seed: int, head: Head | None = None) -> nn.Module:
    """A new model whose weights depend on the seed and on nothing else; the caller's random state stays as it is."""
    with _seed(seed):
        return SYSTEMS[system].build(config, head)


@contextmanager
def _seed(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def _initialise_part(model: Any, part: str) -> None:
    """Give a part of a model without storage the weights that it would have in a new one."""
    module: nn.Module = getattr(model, part)
    # What to_empty would do; from tensors without storage, it too would import the compiler.
    storage = {name: torch.empty(tensor.shape) for name, tensor in module.state_dict().items()}
    module.load_state_dict(storage, assign=True)
    inner: Any
    for inner in module.modules():
        if hasattr(inner, "reset_parameters"):
            inner.reset_parameters()
    module.apply(model.initialise)


class _WithoutDraws(TorchFunctionMode):
    """Leaves out drawing normal numbers. For tensors without storage torch would import its compiler to do nothing."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        options = options or {}
        return options["tensor"] if function is nn.init.normal_ else function(*arguments, **options)


def _refuse_absurd_sizes(folder: Path, config: Any, stored: Mapping[str, StoredTensor]) -> None:
    """Refuse what the files cannot hold: a skeleton of a billion layers takes no storage, but it does take time."""
    longest = max((side for tensor in stored.values() for side in tensor.shape), default=0)
    for name, value in to_json(config).items():
        limit = len(stored) if name == "num_hidden_layers" else max(longest, len(stored))
        if isinstance(value, int) and value > limit:
            raise MalmoiError(
                f"{folder / CONFIG}: {name} is {value:,}, but the files hold {len(stored):,} tensors, the longest side "
                f"of which is {longest:,}."
            )


def _refuse_absurd_labels(folder: Path, head: Head | None, stored: Mapping[str, StoredTensor]) -> None:
    """Refuse more labels than any tensor of the files has a row for: a head of their size would be made anew."""
    longest = max((side for tensor in stored.values() for side in tensor.shape), default=0)
    if head is not None and len(head.labels) > longest:
        raise MalmoiError(
            f"{folder / CONFIG}: it names {len(head.labels):,} labels, but no tensor of the files has so many rows."
        )


def _build_skeleton(folder: Path, configuration: Configuration) -> nn.Module:
    try:
        with torch.device("meta"), _WithoutDraws():
            return SYSTEMS[configuration.system].build(configuration.config, configuration.head)
    except MalmoiError as mistake:
        raise MalmoiError(f"{folder / CONFIG}: {mistake}") from None
    except (RuntimeError, OverflowError, TypeError):
        raise MalmoiError(f"{folder / CONFIG}: the sizes are beyond what any machine can count.") from None


def _rename(stored: Mapping[str, StoredTensor], expected: Collection[str], prefix: str) -> dict[str, StoredTensor]:
    renamed: dict[str, StoredTensor] = {}
    for original, tensor in stored.items():
        name = original
        for early, late in _EARLY_NAMES.items():
            if name.endswith(early):
                name = name.removesuffix(early) + late
        if name not in expected and f"{prefix}.{name}" in expected:
            name = f"{prefix}.{name}"
        if name.endswith(_COUNTING_BUFFER):
            continue
        if name in renamed:
            raise MalmoiError(f"{tensor.path}: {renamed[name].name} and {original} are the same tensor.")
        renamed[name] = tensor
    return renamed


def _merge_tied(renamed: dict[str, StoredTensor], tied: Mapping[str, str]) -> dict[str, StoredTensor]:
    """Without the second copies of tensors that two places of a model share."""
    merged = dict(renamed)
    for alias, name in tied.items():
        copy = merged.pop(alias, None)
        if copy is None:
            continue
        tensor = merged.setdefault(name, copy)
        if tensor is not copy and not (tensor.shape == copy.shape and torch.equal(tensor.read(), copy.read())):
            raise MalmoiError(f"{copy.path}: {alias} differs from {name}; malmoi computes only models that share them.")
    return merged


def _check_shape(tensor: StoredTensor, expected: tuple[int, ...]) -> None:
    if tensor.shape != expected:
        raise MalmoiError(
            f"{tensor.path}: the tensor {tensor.name} has the shape {_show(tensor.shape)}, but {CONFIG} asks for "
            f"{_show(expected)}."
        )


def _show(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "of a single number"


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN:,} more"
