"""Writes the folder everybody reads: config.json, model.safetensors, the tokenizer's files and a model card.

It is written beside its place (replacing.py), so it is there entirely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError
from safetensors.torch import save_file

from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.card import CARD, write_card
from malmoi.checkpoint.configuration import make_configuration
from malmoi.checkpoint.file_names import CONFIG, WEIGHTS
from malmoi.checkpoint.replacing import fill_folder
from malmoi.checkpoint.sentence_modules import SENTENCE_FILES, write_sentence_modules
from malmoi.errors import MalmoiError

if TYPE_CHECKING:
    from malmoi.checkpoint.bundle import Bundle

_OWN_FILES = {CONFIG, WEIGHTS, CARD, *SENTENCE_FILES} | set(
    "tokenizer.json tokenizer_config.json special_tokens_map.json vocab.txt vocab.json merges.txt".split()
)


def write_folder(out: Path, bundle: Bundle, facts: Mapping[str, object]) -> None:
    """Write a model to `out`, without the parts that are absent. An older model in that place is replaced."""
    out = out.resolve()  # behind a link the folder is replaced, not the link
    refuse_other_files(out)
    whole = bundle.model.state_dict()
    weights = {name: tensor for name, tensor in whole.items() if name.partition(".")[0] not in bundle.absent}
    tensors = {name: tensor.detach().cpu().float() for name, tensor in weights.items()}
    parts = {name.partition(".")[0] for name in weights}
    content = make_configuration(bundle.system, bundle.config, parts, bundle.head)
    try:
        with fill_folder(out) as partial:
            bundle.tokenizer.write_files(partial)
            (partial / CONFIG).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
            sentence = bundle.sentence
            is_embedder = sentence is not None and sentence.unsupported is None
            (partial / CARD).write_text(write_card(out.name, content, facts, is_embedder=is_embedder), "utf-8")
            if sentence is not None and is_embedder:
                write_sentence_modules(partial, sentence, bundle.config.hidden_size)
            table = SYSTEMS[bundle.system].table(bundle.config, bundle.head)
            save_file(table.write(tensors), partial / WEIGHTS, metadata={"format": "pt"})
    except SafetensorError as failure:  # the library's wrapping of an error of the system, such as a full disk
        raise MalmoiError(f"{out}: the weights could not be written ({failure}).") from None


def refuse_other_files(out: Path) -> None:
    """Stop where writing a model would take something else away."""
    if out.is_file():
        raise MalmoiError(f"{out} is a file; name a new folder.")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    others = sorted(names - _OWN_FILES if CONFIG in names else names)
    if others:
        raise MalmoiError(f"{out} holds other files ({others[0]}); name a new folder.")
