"""Turns a folder with pickled weights into one with safe files. The pickle may hold tensors and nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import torch
from torch import Tensor

from malmoi.checkpoint.bundle import Bundle, assemble, load_bundle
from malmoi.checkpoint.configuration import read_configuration
from malmoi.checkpoint.file_names import PICKLE, PICKLE_INDEX, WEIGHTS, WEIGHTS_INDEX
from malmoi.checkpoint.location import find_folder, find_weights, read_index
from malmoi.checkpoint.tensors import StoredTensor
from malmoi.data.outputs import refuse_old_folder
from malmoi.errors import MalmoiError


def convert_folder(source: str | Path, out: Path) -> Bundle:
    """Read the model in `source`, whatever form its weights have, and write it to `out`, which must be new or empty."""
    refuse_old_folder(out)
    bundle = read_folder(find_folder(source))
    bundle.save(out)
    return bundle


def read_folder(folder: Path) -> Bundle:
    """The model in a folder, its weights pickled or not."""
    if any((folder / name).is_file() for name in (WEIGHTS, WEIGHTS_INDEX)):
        return load_bundle(folder)
    return assemble(folder, read_configuration(folder), open_pickles(_find_pickles(folder)))


def open_pickles(paths: list[Path]) -> dict[str, StoredTensor]:
    """The tensors of pickled files. Anything in them that is not plain data is refused, not executed."""
    found: dict[str, StoredTensor] = {}
    for path in paths:
        for name, tensor in _load(path).items():
            if name in found:
                raise MalmoiError(f"{path}: the tensor {name} stands already in {found[name].path.name}.")
            dtype = str(tensor.dtype).removeprefix("torch.")
            found[name] = StoredTensor(name, path, tuple(tensor.shape), dtype, tensor.contiguous)
    return found


def _find_pickles(folder: Path) -> list[Path]:
    if (folder / PICKLE).is_file():
        return [folder / PICKLE]
    if (folder / PICKLE_INDEX).is_file():
        return read_index(folder / PICKLE_INDEX, ".bin")
    return find_weights(folder)  # which says that there are none


def _load(path: Path) -> dict[str, Tensor]:
    _refuse_bomb(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # bytes from strangers make the reader fail in every way there is
        raise MalmoiError(
            f"{path} is damaged, or holds more than tensors; nothing of it was executed, and it is not converted."
        ) from None
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in content.items()
    ):
        raise MalmoiError(f"{path} does not hold what a model's weights are: tensors by their names.")
    for name, tensor in content.items():
        # A view may claim a size that its file does not have; copying it would fill the memory.
        if tensor.layout != torch.strided or tensor.numel() * tensor.itemsize > tensor.untyped_storage().nbytes():
            raise MalmoiError(f"{path}: the tensor {name} is larger than what the file holds of it.")
    return content


def _refuse_bomb(path: Path) -> None:
    """Refuse an archive that would grow when it is read: torch stores what it saves as it is."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return  # it is damaged, as torch will find
    size = path.stat().st_size
    if claimed > size:
        raise MalmoiError(
            f"{path}: {claimed:,} bytes are packed into its {size:,}; torch packs nothing, and it is not read."
        )
