"""Where the files of a model lie: a folder on this machine, or the cache of the Hugging Face hub.

Nothing here imports torch, so a path that is wrong is told at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from malmoi.checkpoint.file_names import CONFIG, ONNX_FOLDER, PICKLE, PICKLE_INDEX, WEIGHTS, WEIGHTS_INDEX
from malmoi.checkpoint.local_models import RUN_MODEL, explain_missing, explain_no_model, has_local_start, is_run
from malmoi.checkpoint.replacing import restore_folder
from malmoi.config import read_object
from malmoi.errors import MalmoiError
from malmoi.hub_names import has_hub_form

# Weights as tensors, settings and vocabularies as text: nothing that could be executed is even downloaded.
_DOWNLOADED = ["*.json", "*.txt", "*.safetensors", "*.model"]


def find_folder(model: str | Path) -> Path:
    """The folder of a model: a path as it stands, of a run its model, or the files behind a hub id such as owner/name.

    The hub is asked for what can be nothing else: a name whose first part is here, or that looks like a path, is one.
    """
    folder = _expand_home(Path(model))
    if folder.is_file():
        raise MalmoiError(f"{folder} is a file; give the folder of the model.")
    restore_folder(folder)
    if not folder.is_dir():
        name = str(model)
        if isinstance(model, Path) or not has_hub_form(name) or has_local_start(name):
            raise MalmoiError(explain_missing(folder, name))
        folder = _download(name)
    elif is_run(folder):
        run, folder = folder, folder / RUN_MODEL
        restore_folder(folder)
        if not folder.is_dir():
            raise MalmoiError(explain_no_model(run))
    if not (folder / CONFIG).is_file():
        raise MalmoiError(f"{folder} is not the folder of a model: it has no {CONFIG}.")
    return folder


def _expand_home(path: Path) -> Path:
    with suppress(RuntimeError):  # ~somebody who has none here
        return path.expanduser()
    return path


def find_weights(folder: Path) -> list[Path]:
    """The safetensors files of a model, one or several."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / WEIGHTS_INDEX).is_file():
        return read_index(folder / WEIGHTS_INDEX, ".safetensors")
    if (folder / PICKLE).is_file() or (folder / PICKLE_INDEX).is_file():
        raise MalmoiError(
            f"{folder} has its weights as a pickle ({PICKLE}), which can carry programs; "
            f"turn it into safe files first: malmoi convert {folder} --out DIR"
        )
    if (folder / ONNX_FOLDER).is_dir():
        raise MalmoiError(
            f"{folder} holds its weights as ONNX only, which cannot be trained and fills no gaps; use the folder that "
            "it was converted from."
        )
    raise MalmoiError(f"{folder} holds no weights: neither {WEIGHTS} nor {WEIGHTS_INDEX}.")


def identify_model(folder: Path, weights: Sequence[Path]) -> dict[str, Any]:
    """What tells this model, as it is now, from any other, without reading all of its weights."""
    files = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in weights]
    return {"config": hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest(), "weights": files}


def read_index(path: Path, suffix: str) -> list[Path]:
    """The files that an index of weights in several files names; they lie beside it."""
    places = read_object(path).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise MalmoiError(f"{path}: weight_map must name the file of each tensor.")
    files = []
    for name in dict.fromkeys(map(str, places.values())):
        # An index comes from strangers: it may point to files beside it and nowhere else.
        if PurePosixPath(name).name != name or "\\" in name or not name.endswith(suffix):
            raise MalmoiError(f"{path}: the file name {name!r} is refused; only {suffix} files beside it are read.")
        if not (path.parent / name).is_file():
            raise MalmoiError(f"{path.parent / name} is missing; {path.name} names it.")
        files.append(path.parent / name)
    return files


def _download(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=_DOWNLOADED))
    except RepositoryNotFoundError:
        raise MalmoiError(
            f"{hub_id}: there is no such folder, and the hub shows no such model; it may be misspelt, private or gated "
            "(then log in with: hf auth login)."
        ) from None
    except Exception as failure:  # each release of the library has other errors for a network that does not answer
        raise MalmoiError(
            f"{hub_id}: there is no such folder, the hub cannot be reached and its cache on this machine does not hold "
            f"the model ({type(failure).__name__}); give a folder, or download the model first."
        ) from None
