"""Tensors that still lie in their files: name, shape and type are known before a single one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from malmoi.errors import MalmoiError

# A model has some hundreds of tensors. Headers far beyond are made to fill the memory, and refused unread.
_LARGEST_HEADER = 8_000_000
_LENGTH_BYTES = 8
# What stands in a header once for each tensor.
_MARK = b'"data_offsets"'
_FLOATS = {"F32", "F16", "BF16", "F64", "float32", "float16", "bfloat16", "float64"}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file; `fetch` reads it as it is."""

    name: str
    path: Path
    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], Tensor]

    def read(self) -> Tensor:
        """The tensor in single precision, whatever it is stored in."""
        if self.dtype not in _FLOATS:
            raise MalmoiError(f"{self.path}: the tensor {self.name} is of type {self.dtype}; only floats are read.")
        return self.fetch().to(torch.float32)


def open_safetensors(paths: Iterable[Path], most: int) -> dict[str, StoredTensor]:
    """The tensors of one file or of several that belong together; no more than `most`, which is decided first."""
    paths = list(paths)
    _refuse_crowds(paths, most)
    found: dict[str, StoredTensor] = {}
    for path in paths:
        for tensor in _open(path):
            if tensor.name in found:
                raise MalmoiError(f"{path}: the tensor {tensor.name} stands already in {found[tensor.name].path.name}.")
            found[tensor.name] = tensor
    return found


def _refuse_crowds(paths: list[Path], most: int) -> None:
    """Refuse files of more tensors than a model can have, before the library makes objects of them."""
    room, count = _LARGEST_HEADER, 0
    for path in paths:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > path.stat().st_size:
                continue  # the library says of it that it is damaged
            room -= length
            count += file.read(length).count(_MARK) if room >= 0 else 0
        if room < 0:
            raise MalmoiError(
                f"{path}: the list of its tensors takes {length:,} bytes; no model needs so many, and it is not read."
            )
        if count > most:
            raise MalmoiError(
                f"{path}: it names {count:,} tensors, but such a model has at most {most:,}; it is not read."
            )


def _open(path: Path) -> list[StoredTensor]:
    try:
        file: Any = safe_open(path, framework="pt")
        tensors = []
        for name in file.keys():  # noqa: SIM118 (the file is no mapping)
            part = file.get_slice(name)
            shape = tuple(part.get_shape())
            tensors.append(StoredTensor(name, path, shape, part.get_dtype(), _fetcher(file.get_tensor, name)))
    except (SafetensorError, OSError) as mistake:
        raise MalmoiError(f"{path} is damaged or no safetensors file ({mistake}); fetch it again.") from None
    return tensors


def _fetcher(get_tensor: Callable[[str], Tensor], name: str) -> Callable[[], Tensor]:
    return lambda: get_tensor(name)
