"""The family at a glance: every system by the `model_type` of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from malmoi.errors import MalmoiError
from malmoi.systems import bert
from malmoi.weightmap import WeightMap


@dataclass(frozen=True)
class System:
    """A model, its configuration, its sizes, and the table of its weights."""

    config: type[Any]
    model: Callable[[Any], nn.Module]
    presets: Mapping[str, Any]
    weights: Callable[[Any], WeightMap]


SYSTEMS = {
    "bert": System(bert.BertConfig, bert.Bert, bert.PRESETS, bert.weight_map),
}


def find_preset(name: str) -> tuple[str, Any]:
    """The system and the configuration that a preset such as bert-mini stands for."""
    for system, entry in SYSTEMS.items():
        if name in entry.presets:
            return system, entry.presets[name]
    known = ", ".join(name for entry in SYSTEMS.values() for name in entry.presets)
    raise MalmoiError(f"{name} is neither a folder nor a preset; the presets are {known}.")
