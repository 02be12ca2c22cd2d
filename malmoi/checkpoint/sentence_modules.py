"""What makes an encoder a sentence embedder: modules.json and the folders it names, as sentence-transformers has them.

Nothing here imports torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from malmoi.config import read_object
from malmoi.errors import MalmoiError

SentencePooling = Literal["cls", "max", "mean", "mean-sqrt-len", "weighted-mean"]

MODULES = "modules.json"
POOLING_FOLDER = "1_Pooling"
NORMALIZE_FOLDER = "2_Normalize"
LENGTH_FILE = "sentence_bert_config.json"
OTHER_SETTINGS = "config_sentence_transformers.json"
SENTENCE_FILES = frozenset({MODULES, POOLING_FOLDER, NORMALIZE_FOLDER, LENGTH_FILE, OTHER_SETTINGS})

# Our name of a pooling, their name since version 6, and their switch before that.
_POOLINGS: list[tuple[SentencePooling, str, str]] = [
    ("cls", "cls", "pooling_mode_cls_token"),
    ("max", "max", "pooling_mode_max_tokens"),
    ("mean", "mean", "pooling_mode_mean_tokens"),
    ("mean-sqrt-len", "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"),
    ("weighted-mean", "weightedmean", "pooling_mode_weightedmean_tokens"),
]
_LAST_TOKEN = "pooling_mode_lasttoken"
# A tokenizer without a limit has a number with thirty digits in its place.
_NO_LIMIT = 10**9


@dataclass(frozen=True)
class SentenceModules:
    """How a folder wants a text to become a vector. `max_seq_length` counts tokens with [CLS] and [SEP].

    `unsupported` is the sentence about what malmoi does not compute; the encoder itself can still be used.
    """

    pool: SentencePooling = "mean"
    normalize: bool = False
    max_seq_length: int | None = None
    unsupported: str | None = None


def find_length(sentence: SentenceModules | None, max_positions: int) -> int:
    """The most tokens that a text may have, [CLS] and [SEP] included."""
    wanted = sentence.max_seq_length if sentence is not None else None
    return min(wanted or max_positions, max_positions)


def read_sentence_modules(folder: Path) -> SentenceModules | None:
    """What modules.json and its files say; None for a folder that is an encoder and nothing more."""
    path = folder / MODULES
    if not path.is_file():
        return None
    length = _read_length(folder)
    try:
        pool, normalize = _read_modules(folder, path)
        _refuse_other_texts(folder)
    except _Unsupported as reason:
        return SentenceModules(max_seq_length=length, unsupported=str(reason))
    return SentenceModules(pool, normalize, length)


def write_sentence_modules(folder: Path, modules: SentenceModules, hidden_size: int) -> None:
    """Write the files that every version of sentence-transformers reads."""
    kinds = {"": "Transformer", POOLING_FOLDER: "Pooling"}
    if modules.normalize:
        kinds[NORMALIZE_FOLDER] = "Normalize"
    entries = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    switches = {switch: modules.pool == ours for ours, _, switch in _POOLINGS}
    for path in kinds:
        (folder / path).mkdir(exist_ok=True)
    _write(folder / MODULES, entries)
    _write(folder / POOLING_FOLDER / "config.json", {"word_embedding_dimension": hidden_size, **switches})
    if modules.normalize:
        _write(folder / NORMALIZE_FOLDER / "config.json", {})
    length = {} if modules.max_seq_length is None else {"max_seq_length": modules.max_seq_length}
    _write(folder / LENGTH_FILE, {**length, "do_lower_case": False})


class _Unsupported(Exception):
    """Something the folder asks for that malmoi does not compute."""


def _read_modules(folder: Path, path: Path) -> tuple[SentencePooling, bool]:
    try:
        entries = json.loads(path.read_text("utf-8-sig"))
        kinds = [(str(entry["type"]).rpartition(".")[2], str(entry["path"])) for entry in entries]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise MalmoiError(f"{path}: a list of modules with type and path is needed.") from None
    known = ("Transformer", "Pooling", "Normalize")
    for kind, _ in kinds:
        if kind not in known:
            raise _Unsupported(f"{path}: the module {kind} is not one that malmoi computes ({', '.join(known)})")
    if [kind for kind, _ in kinds] not in (list(known), list(known[:2])):
        raise _Unsupported(f"{path}: the modules must be {', '.join(known)}, in this order")
    place = Path(kinds[1][1])
    if place.is_absolute() or ".." in place.parts:
        raise MalmoiError(f"{path}: the path {kinds[1][1]!r} leads out of the folder.")
    return _read_pooling(folder / place / "config.json"), len(kinds) == 3


def _read_pooling(path: Path) -> SentencePooling:
    content = read_object(path)
    if "pooling_mode" in content:
        named = content["pooling_mode"]
        asked = {str(name) for name in (named if isinstance(named, list) else [named])}
        found = [ours for ours, theirs, _ in _POOLINGS if theirs in asked]
    else:
        asked = {switch for *_, switch in [*_POOLINGS, ("", "", _LAST_TOKEN)] if content.get(switch)}
        asked = asked or {"pooling_mode_mean_tokens"}
        found = [ours for ours, _, switch in _POOLINGS if switch in asked]
    if len(found) != 1 or len(asked) != 1:
        raise _Unsupported(f"{path}: the pooling {', '.join(sorted(asked))} is not one that malmoi computes")
    return found[0]


def _read_length(folder: Path) -> int | None:
    for name, key in ((LENGTH_FILE, "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        limit = read_object(folder / name).get(key) if (folder / name).is_file() else None
        if isinstance(limit, int | float) and not isinstance(limit, bool) and 0 < limit < _NO_LIMIT:
            return int(limit)
    return None


def _refuse_other_texts(folder: Path) -> None:
    """Settings that change the text before the tokenizer sees it."""
    lowers = _setting(folder / LENGTH_FILE, "do_lower_case")
    if lowers and not _setting(folder / "tokenizer_config.json", "do_lower_case"):
        raise _Unsupported(f"{folder / LENGTH_FILE}: do_lower_case on top of the tokenizer is not computed by malmoi")
    prompt = _setting(folder / OTHER_SETTINGS, "default_prompt_name")
    prompts = _setting(folder / OTHER_SETTINGS, "prompts")
    if prompt is not None and isinstance(prompts, dict) and prompts.get(prompt):
        raise _Unsupported(f"{folder / OTHER_SETTINGS}: a prompt before every text ({prompt}) is not added by malmoi")


def _setting(path: Path, key: str) -> Any:
    return read_object(path).get(key) if path.is_file() else None


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
