"""The family at a glance: every system by the `model_type` of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from malmoi.errors import MalmoiError
from malmoi.objectives.masked import MASKED
from malmoi.objectives.task import Objective
from malmoi.systems import bert
from malmoi.weightmap import WeightMap


@dataclass(frozen=True)
class System:
    """A model, its configuration, its sizes, and how it lies in the folder that everybody reads."""

    config: type[Any]
    model: Callable[[Any], nn.Module]
    presets: Mapping[str, Any]
    weights: Callable[[Any], WeightMap]
    # How it can be pre-trained; the first is the published way.
    objectives: Mapping[str, Objective[Any]]
    # The parts of the model that a folder may lack, as people call them.
    heads: Mapping[str, str]
    # The class of transformers, from the most to the fewest heads: the first whose heads are all there.
    architectures: Mapping[str, set[str]]
    # Their names for tensors that are another one of theirs.
    tied: Mapping[str, str]
    # Settings of config.json that change what is computed, and the values of each that are computed here.
    only: Mapping[str, tuple[object, ...]]


SYSTEMS = {
    "bert": System(
        config=bert.BertConfig,
        model=bert.Bert,
        presets=bert.PRESETS,
        weights=bert.weight_map,
        objectives={"mlm+nsp": MASKED, "mlm": MASKED},
        heads=bert.HEADS,
        architectures=bert.ARCHITECTURES,
        tied=bert.TIED,
        only=bert.ONLY,
    ),
}


def find_preset(name: str) -> tuple[str, Any]:
    """The system and the configuration that a preset such as bert-mini stands for."""
    for system, entry in SYSTEMS.items():
        if name in entry.presets:
            return system, entry.presets[name]
    known = ", ".join(name for entry in SYSTEMS.values() for name in entry.presets)
    raise MalmoiError(f"{name} is neither a folder nor a preset; the presets are {known}.")


def find_objective(system: str, name: str) -> Objective[Any]:
    known = SYSTEMS[system].objectives
    if name not in known:
        raise MalmoiError(f"--objective {name}: {system} is not trained that way; choose {' or '.join(known)}.")
    return known[name]
