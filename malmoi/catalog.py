"""The family at a glance: every system by the `model_type` of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from malmoi.blocks.head import Head, Shape
from malmoi.blocks.heads import HeadForm
from malmoi.errors import MalmoiError
from malmoi.hub_names import suggest_hub_id
from malmoi.objectives.masked import MASKED, MASKED_PAIRS
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
    # How it is fitted with a head for a task.
    task_heads: Mapping[Shape, HeadForm]
    # Settings of config.json that change what is computed, and the values of each that are computed here.
    only: Mapping[str, tuple[object, ...]]

    def build(self, config: Any, head: Head | None = None) -> nn.Module:
        """A model to be pre-trained; or one with a head for a task, and without the parts that this needs not."""
        model = self.model(config)
        if head is not None:
            form = self.task_heads[head.shape]
            for part in self.heads.keys() - form.needs:
                setattr(model, part, None)
            model.task_head = form.build(config, head)
        return model

    def table(self, config: Any, head: Head | None = None) -> WeightMap:
        """The names of all weights of such a model, ours and theirs."""
        table = self.weights(config)
        if head is not None:
            form = self.task_heads[head.shape]
            dropped = self.heads.keys() - form.needs
            table.rows = [row for row in table.rows if row.ours.partition(".")[0] not in dropped]
            table.rows.extend(form.rows)
        return table

    def limit_names(self, config: Any, head: Head | None = None) -> int:
        """A number that the tensors of such a model stay below, without a table of as many layers as it claims."""
        layers: int = config.num_hidden_layers
        return layers * sum(len(row.theirs) for row in self.table(replace(config, num_hidden_layers=1), head).rows)

    def name_class(self, parts: set[str], head: Head | None = None) -> str:
        """The class of transformers for a model that has these parts."""
        if head is not None and "task_head" in parts:
            return self.task_heads[head.shape].architecture
        return next(name for name, needed in self.architectures.items() if needed <= parts)

    def find_shape(self, architecture: str) -> Shape | None:
        """The shape of the head that a class of transformers has for a task."""
        shapes = (shape for shape, form in self.task_heads.items() if form.architecture == architecture)
        return next(shapes, None)


SYSTEMS = {
    "bert": System(
        config=bert.BertConfig,
        model=bert.Bert,
        presets=bert.PRESETS,
        weights=bert.weight_map,
        objectives={"mlm+nsp": MASKED_PAIRS, "mlm": MASKED},
        heads=bert.HEADS,
        architectures=bert.ARCHITECTURES,
        tied=bert.TIED,
        task_heads=bert.TASK_HEADS,
        only=bert.ONLY,
    ),
}


def find_preset(name: str) -> tuple[str, Any]:
    """The system and the configuration that a preset such as bert-mini stands for."""
    for system, entry in SYSTEMS.items():
        if name in entry.presets:
            return system, entry.presets[name]
    known = [name for entry in SYSTEMS.values() for name in entry.presets]
    published = suggest_hub_id(name)
    if published is None:
        raise MalmoiError(f"{name} is neither a folder nor a preset; the presets are {', '.join(known)}.")
    size = next((one for one in known if name.lower().startswith(f"{one}-")), None)
    fresh = f"fresh weights of that size are {size}" if size else f"fresh weights are {', '.join(known)}"
    raise MalmoiError(f"{name} is no preset: the published weights are {published}, {fresh}.")


def find_objective(system: str, name: str) -> Objective[Any]:
    known = SYSTEMS[system].objectives
    if name not in known:
        raise MalmoiError(f"--objective {name}: {system} is not trained that way; choose {' or '.join(known)}.")
    return known[name]
