"""Writes the folder everybody reads: config.json, model.safetensors, the tokenizer's files and a model card.

It is written beside its place and renamed, so it is there entirely or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from malmoi.blocks.head import Head
from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.card import write_card
from malmoi.checkpoint.configuration import make_configuration
from malmoi.checkpoint.location import CONFIG, WEIGHTS
from malmoi.checkpoint.sentence_modules import SENTENCE_FILES, SentenceModules, write_sentence_modules
from malmoi.data.folders import publish_folder
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer

CARD = "README.md"
_OWN_FILES = {CONFIG, WEIGHTS, CARD, *SENTENCE_FILES} | set(
    "tokenizer.json tokenizer_config.json special_tokens_map.json vocab.txt vocab.json merges.txt".split()
)


def write_folder(
    out: Path,
    system: str,
    config: Any,
    model: nn.Module,
    tokenizer: Tokenizer,
    absent: Collection[str],
    facts: Mapping[str, object],
    sentence: SentenceModules | None = None,
    head: Head | None = None,
) -> None:
    """Write a model to `out`, without the parts that are `absent`. An older model in that place is replaced."""
    out = out.resolve()  # behind a link the folder is replaced, not the link
    refuse_other_files(out)
    weights = {
        name: parameter for name, parameter in model.state_dict().items() if name.partition(".")[0] not in absent
    }
    tensors = {name: tensor.detach().cpu().float() for name, tensor in weights.items()}
    parts = {name.partition(".")[0] for name in weights}
    content = make_configuration(system, config, parts, head)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        tokenizer.save(partial)
        (partial / CONFIG).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
        is_embedder = sentence is not None and sentence.unsupported is None
        (partial / CARD).write_text(write_card(out.name, content, facts, is_embedder=is_embedder), "utf-8")
        if sentence is not None and is_embedder:
            write_sentence_modules(partial, sentence, config.hidden_size)
        save_file(SYSTEMS[system].table(config, head).write(tensors), partial / WEIGHTS, metadata={"format": "pt"})
        _replace(partial, out)
    except SafetensorError as failure:  # the library's wrapping of an error of the system, such as a full disk
        raise MalmoiError(f"{out}: the weights could not be written ({failure}).") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def refuse_other_files(out: Path) -> None:
    """Stop where writing a model would take something else away."""
    if out.is_file():
        raise MalmoiError(f"{out} is a file; name a new folder.")
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    others = sorted(names - _OWN_FILES if CONFIG in names else names)
    if others:
        raise MalmoiError(f"{out} holds other files ({others[0]}); name a new folder.")


def _replace(partial: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    if out.is_dir():
        out.rename(old)
    try:
        publish_folder(partial, out)
    except OSError:
        if old.is_dir():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)
