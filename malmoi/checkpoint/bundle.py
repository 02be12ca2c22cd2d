"""A model with all it needs: configuration, tokenizer and weights together, from a folder, from the hub, or new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from malmoi.blocks.head import Head
from malmoi.catalog import SYSTEMS, find_preset
from malmoi.checkpoint.card import read_unfinished
from malmoi.checkpoint.configuration import Configuration, read_configuration
from malmoi.checkpoint.fitting import build_model, fill_model, fit_tensors
from malmoi.checkpoint.folder import write_folder
from malmoi.checkpoint.location import find_folder, find_weights
from malmoi.checkpoint.sentence_modules import SentenceModules, read_sentence_modules
from malmoi.checkpoint.tensors import StoredTensor, open_safetensors
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer, load_tokenizer
from malmoi.writing import writing


@dataclass
class Bundle:
    """Configuration, tokenizer and model. `notes` say what its files lacked or had too much.

    `absent` names the parts (such as `word_head`) whose weights are fresh because the files had none: they answer
    nothing and are not saved. Whoever trains them takes them off this list. `sentence` says how texts become vectors,
    where the folder does; `head` what a model with a head for a task answers.
    """

    system: str
    config: Any
    tokenizer: Tokenizer
    model: nn.Module
    notes: list[str] = field(default_factory=list)
    absent: frozenset[str] = frozenset()
    sentence: SentenceModules | None = None
    head: Head | None = None

    @property
    def max_positions(self) -> int:
        """The longest sequence that the model has positions for."""
        return int(self.config.max_position_embeddings)

    def save(self, folder: str | Path, facts: Mapping[str, object] | None = None) -> None:
        """Write a Hugging Face folder; `facts` are further lines for the table of its model card."""
        with writing(folder):
            write_folder(Path(folder), self, facts or {})

    def change_head(self, head: Head | None, seed: int = 0) -> None:
        """Give the model another head for a task, or with None those of pre-training; fresh parts are in `absent`."""
        model = build_model(self.system, self.config, seed, head)
        kept = self.model.state_dict()
        if head is None or self.head is None or (head.shape, head.labels) != (self.head.shape, self.head.labels):
            kept = {name: tensor for name, tensor in kept.items() if not name.startswith("task_head.")}
        wanted = model.state_dict().keys()
        model.load_state_dict({name: kept[name] for name in wanted & kept.keys()}, strict=False)
        parts = {name for name, _ in model.named_children()}
        self.absent = (self.absent & parts) | {name.partition(".")[0] for name in wanted - kept.keys()}
        self.model, self.head = model.train(self.model.training), head


def load_bundle(model: str | Path) -> Bundle:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode."""
    folder = find_folder(model)
    weights = find_weights(folder)
    configuration = read_configuration(folder)
    return assemble(folder, configuration, open_safetensors(weights, configuration.most_tensors))


def create_bundle(preset: str | Any, tokenizer: Tokenizer, seed: int = 0) -> Bundle:
    """A new model for a tokenizer, from a preset such as bert-mini or from a configuration.

    Its weights depend on the seed only.
    """
    system, config = find_preset(preset) if isinstance(preset, str) else (_system_of(preset), preset)
    fitted: dict[str, Any] = {"vocab_size": tokenizer.vocab_size}
    if tokenizer.pad_id is not None and any(known.name == "pad_token_id" for known in fields(config)):
        fitted["pad_token_id"] = tokenizer.pad_id
    config = replace(config, **fitted)
    return Bundle(system, config, tokenizer, build_model(system, config, seed).eval())


def assemble(folder: Path, configuration: Configuration, stored: Mapping[str, StoredTensor]) -> Bundle:
    """The model that a folder describes, with weights from `stored`."""
    fit = fit_tensors(folder, configuration, stored)
    tokenizer = load_tokenizer(folder)
    size = configuration.config.vocab_size
    if tokenizer.vocab_size > size:
        raise MalmoiError(
            f"{folder}: the tokenizer has ids up to {tokenizer.vocab_size - 1:,}, but the model's vocab_size is "
            f"{size:,}; they do not belong together."
        )
    sentence = read_sentence_modules(folder)
    unsupported = [sentence.unsupported] if sentence is not None and sentence.unsupported else []
    return Bundle(
        system=configuration.system,
        config=configuration.config,
        tokenizer=tokenizer,
        model=fill_model(configuration, fit).eval(),
        notes=[*read_unfinished(folder), *configuration.notes, *fit.notes, *unsupported],
        absent=fit.fresh,
        sentence=sentence,
        head=configuration.head,
    )


def _system_of(config: object) -> str:
    for name, system in SYSTEMS.items():
        if type(config) is system.config:
            return name
    raise MalmoiError(f"{type(config).__name__} is neither the name of a preset nor a configuration malmoi knows.")
