"""Models on this machine: the one of a run, and those that lie near a name which leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from malmoi.checkpoint.file_names import CONFIG
from malmoi.config import read_object
from malmoi.errors import MalmoiError
from malmoi.hub_names import has_hub_form, suggest_hub_id

# Where a run keeps its model.
RUN_MODEL = "model"
_WEIGHTS_OF_ANY_FORM = ("*.safetensors*", "pytorch_model*.bin*", "onnx")
_SHOWN, _LOOKED_AT = 3, 1000


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run of training: its config.json says how to train, not what a model is."""
    if not (folder / CONFIG).is_file():
        return False
    with suppress(MalmoiError):  # what is wrong with the file is told by who needs it
        content = read_object(folder / CONFIG)
        return "model_type" not in content and {"training", "architecture"} <= content.keys()
    return False


def has_local_start(name: str) -> bool:
    """Whether a name such as run/model begins with what is here, so that it cannot mean a model of the hub."""
    first, slash, _ = name.partition("/")
    return bool(slash) and Path(first).exists()


def explain_missing(folder: Path, name: str) -> str:
    """What to say of the folder of a model that does not exist: what is missing, and what may be meant."""
    there = next((parent for parent in folder.parents if parent.is_dir()), Path())
    if is_run(there) and not (there / RUN_MODEL).is_dir():
        return explain_no_model(there)
    said = f"{name}: there is no such folder"
    if there != Path():
        said += f" ({there} has no {folder.parts[len(there.parts)]})"
    if has_hub_form(name) and has_local_start(name):
        said += ", and the hub is not asked for a name that begins with a folder here"
    published = suggest_hub_id(name)
    if published is not None:
        return f"{said}; the published model has the hub id {published}."
    near = sorted(_find_models(there), key=lambda found: (-SequenceMatcher(None, found, str(folder)).ratio(), found))
    if near:
        return f"{said}; models nearby: {', '.join(near[:_SHOWN])}."
    return f"{said}; give the folder of a model, or a hub id: owner/name."


def explain_no_model(run: Path) -> str:
    return (
        f"{run}: this run holds no finished model yet ({run / RUN_MODEL} is missing); wait for its end, or run its "
        "command again to go on."
    )


def _find_models(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # a folder that may not be read
        for child in islice(folder.iterdir(), _LOOKED_AT):
            for place in (child, child / RUN_MODEL):
                if (place / CONFIG).is_file() and any(any(place.glob(form)) for form in _WEIGHTS_OF_ANY_FORM):
                    yield str(place)
