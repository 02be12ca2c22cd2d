"""config.json ⇄ the configuration of a system. What would change the computation is never passed over in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malmoi.blocks.head import Head
from malmoi.catalog import SYSTEMS
from malmoi.checkpoint.file_names import CONFIG
from malmoi.checkpoint.head_fields import read_head, write_head
from malmoi.config import read_dataclass, read_object, to_json
from malmoi.errors import MalmoiError

# Settings of other uses (training, tasks, generation, bookkeeping): the encoder is the same whatever they say.
_HARMLESS = set(
    """
    architectures model_type _name_or_path name_or_path transformers_version torch_dtype dtype use_bfloat16
    use_cache gradient_checkpointing classifier_dropout chunk_size_feed_forward return_dict torchscript
    output_attentions output_hidden_states _attn_implementation attn_implementation _attn_implementation_autoset
    id2label label2id num_labels problem_type finetuning_task task_specific_params tie_word_embeddings
    bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id decoder_start_token_id cross_attention_hidden_size
    tokenizer_class language directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
    """.split()
)
# Files may hold more than the model: what an optimizer remembers, heads for other uses.
_SPARE_TENSORS = 1000


@dataclass(frozen=True)
class Configuration:
    """What config.json says: which system, its configuration, its head if it has one for a task, and what the user
    should know of the rest."""

    system: str
    config: Any
    head: Head | None
    notes: list[str]

    @property
    def most_tensors(self) -> int:
        """How many tensors the files of such a model may hold."""
        return SYSTEMS[self.system].limit_names(self.config, self.head) + _SPARE_TENSORS


def read_configuration(folder: Path) -> Configuration:
    path = folder / CONFIG
    content = read_object(path)
    system = _read_system(content, path)
    # A token a tokenizer does not have is null in their files; the model computes the same without it.
    given = {name: value for name, value in content.items() if not (name.endswith("_token_id") and value is None)}
    only = SYSTEMS[system].only
    config, others = read_dataclass(SYSTEMS[system].config, given, path)
    for name, values in only.items():
        if name in others and others[name] not in values:
            raise MalmoiError(f"{path}: {name} is {others[name]!r}, which malmoi does not compute.")
    notes = []
    if others.pop("auto_map", None):
        notes.append("auto_map: the folder names code of its own, which is never executed")
    unknown = sorted(set(others) - _HARMLESS - set(only))
    if unknown:
        notes.append(f"settings of {CONFIG} that are not used: {', '.join(unknown)}")
    architectures = content.get("architectures")
    named = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    shape = SYSTEMS[system].find_shape(named)
    return Configuration(system, config, None if shape is None else read_head(shape, content, path), notes)


def _read_system(content: Mapping[str, Any], path: Path) -> str:
    known = ", ".join(SYSTEMS)
    if "model_type" not in content:
        raise MalmoiError(
            f"{path}: model_type is missing, which says what kind of model this is; malmoi reads {known}: if it is one "
            f'of these, add it ("model_type": "{next(iter(SYSTEMS))}").'
        )
    system = content["model_type"]
    if not isinstance(system, str) or system not in SYSTEMS:
        raise MalmoiError(
            f"{path}: model_type {system!r} is not a kind of model that malmoi reads, which is {known}; choose such a "
            "model, or use this one with transformers."
        )
    return system


def make_configuration(system: str, config: Any, parts: Iterable[str], head: Head | None) -> dict[str, Any]:
    """The content of config.json for a model that has these parts."""
    return {
        "model_type": system,
        "architectures": [SYSTEMS[system].name_class(set(parts), head)],
        **to_json(config),
        **({} if head is None else write_head(head)),
        # The name of transformers 5, and the one that came before it.
        "dtype": "float32",
        "torch_dtype": "float32",
    }
