"""Writes a model as ONNX: the folder with its configuration, its tokenizer and onnx/model.onnx (or model_int8.onnx).

It is written beside its place (checkpoint/replacing.py), so it is there entirely or not at all.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from malmoi.checkpoint.bundle import Bundle
from malmoi.checkpoint.configuration import make_configuration
from malmoi.checkpoint.file_names import CONFIG
from malmoi.checkpoint.replacing import fill_folder
from malmoi.data.outputs import refuse_old_folder
from malmoi.errors import MalmoiError
from malmoi.features.onnx_names import FOLDER, INT8_MODEL, MODEL, check_installed

# What sentence-transformers keeps beside an encoder: settings, and a numbered folder for each module after it.
_SENTENCE_SETTINGS = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
_MODULE_FILES = ("config.json", "model.safetensors")
# A file in the format of ONNX can be no larger, and words of a vocabulary are most of a model that is.
_LARGEST_FILE = 2**31 - 1


def export_onnx(bundle: Bundle, out: Path, *, int8: bool = False, source: Path | None = None) -> Path:
    """Write `bundle` to the folder `out`, which must be new or empty; returns the path of the ONNX file.

    What makes a sentence embedder of the folder `source` (modules.json and what it names) comes along.
    """
    check_installed()
    out = out.resolve()
    refuse_old_folder(out)
    if bundle.system != "bert":
        raise MalmoiError(f"a model of the system {bundle.system} cannot be written as ONNX yet; bert can.")
    from malmoi.features.onnx_graph import write_graph

    parts = {name.partition(".")[0] for name in bundle.model.state_dict()} - bundle.absent
    head = bundle.head if "task_head" in parts else None
    weights = {name: tensor.detach().cpu().float().numpy() for name, tensor in bundle.model.state_dict().items()}
    graph = write_graph(bundle.config, weights, pooler="pooler" in parts, int8=int8, head=head)
    if graph.ByteSize() > _LARGEST_FILE:
        raise MalmoiError(
            f"{out}: the model would take {graph.ByteSize():,} bytes, and an ONNX file holds at most {_LARGEST_FILE:,}."
        )
    name = INT8_MODEL if int8 else MODEL
    with fill_folder(out) as partial:
        bundle.tokenizer.write_files(partial)
        content = make_configuration(bundle.system, bundle.config, parts, head)
        (partial / CONFIG).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
        if source is not None:
            _copy_sentence_modules(source, partial)
        (partial / FOLDER).mkdir()
        (partial / FOLDER / name).write_bytes(graph.SerializeToString())
    return out / FOLDER / name


def _copy_sentence_modules(source: Path, out: Path) -> None:
    names = [
        *_SENTENCE_SETTINGS,
        *(f"{folder.name}/{name}" for folder in source.glob("[0-9]_*") for name in _MODULE_FILES),
    ]
    for name in names:
        if (source / name).is_file():
            (out / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, out / name)
