"""What is in the folder of a model, told without reading its weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.card import read_unfinished
from malmoi.checkpoint.configuration import read_configuration
from malmoi.checkpoint.fitting import fit_tensors
from malmoi.checkpoint.location import find_folder, find_weights
from malmoi.checkpoint.tensors import StoredTensor, open_safetensors
from malmoi.config import to_json
from malmoi.text.tokenizer import load_tokenizer


@dataclass(frozen=True)
class Summary:
    """The figures of a model. `encoder_parameters` leaves the heads out; a tensor in two places counts once."""

    folder: str
    system: str
    parameters: int
    encoder_parameters: int
    vocab_size: int
    tokenizer: str
    tokenizer_pieces: int
    num_hidden_layers: int
    hidden_size: int
    max_position_embeddings: int
    config: dict[str, Any]
    head: dict[str, Any] | None
    weight_types: list[str]
    file_bytes: dict[str, int]
    notes: list[str]


def summarise(model: str | Path) -> Summary:
    folder = find_folder(model)
    weights = find_weights(folder)
    configuration = read_configuration(folder)
    fit = fit_tensors(folder, configuration, open_safetensors(weights, configuration.most_tensors))
    tokenizer = load_tokenizer(folder)
    config = configuration.config
    table = SYSTEMS[configuration.system].table(config, configuration.head)
    heads = {name for row in table.rows if row.ours.partition(".")[0].endswith("_head") for name in row.theirs}
    return Summary(
        folder=str(folder),
        system=configuration.system,
        parameters=_count(fit.tensors.values()),
        encoder_parameters=_count(tensor for name, tensor in fit.tensors.items() if name not in heads),
        vocab_size=config.vocab_size,
        tokenizer=tokenizer.kind,
        tokenizer_pieces=tokenizer.vocab_size,
        num_hidden_layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        max_position_embeddings=config.max_position_embeddings,
        config=to_json(config),
        head=None if configuration.head is None else to_json(configuration.head),
        weight_types=sorted({tensor.dtype for tensor in fit.tensors.values()}),
        file_bytes={path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()},
        notes=[*read_unfinished(folder), *configuration.notes, *fit.notes],
    )


def _count(tensors: Iterable[StoredTensor]) -> int:
    return sum(math.prod(tensor.shape) for tensor in tensors)
