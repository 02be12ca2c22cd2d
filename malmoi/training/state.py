"""Checkpoints of a training run: there entirely or not at all, verified before they are used.

    checkpoints/step-000500/
      state.safetensors   weights, and what the optimizer remembers of each
      state.json          the number of steps made, of updates among them, and the scale of half-precision losses
      manifest.json       size and digest of the files above

The number of steps is all the data state there is: examples, dropout and learning rate follow from it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from malmoi.data.folders import digest_file, publish_folder
from malmoi.errors import MalmoiError
from malmoi.training.distributed import World
from malmoi.training.optimizer import Optimizer
from malmoi.training.sharding import divide_like, make_whole

_TENSORS, _FACTS, _MANIFEST = "state.safetensors", "state.json", "manifest.json"
_NAME = re.compile(r"step-(\d{6,})")
_LEFT_BY_A_KILL = re.compile(r"\.step-\d{6,}\.partial")
_MOMENTS = ("exp_avg", "exp_avg_sq")


def save_checkpoint(folder: Path, steps: int, model: nn.Module, optimizer: Optimizer, keep: int, world: World) -> None:
    """Write the checkpoint after `steps` updates, then remove the oldest ones beyond `keep`.

    All ranks call it, because a divided model is put together by all of them; the first one writes.
    """
    tensors = _collect(model, optimizer.adamw)
    require_finite(tensors, steps)
    if world.is_first:
        _write(folder, steps, tensors, {"steps": steps, **_remember(optimizer)}, keep)
    world.wait()


def _write(folder: Path, steps: int, tensors: dict[str, Tensor], facts: dict[str, Any], keep: int) -> None:
    out = folder / f"step-{steps:06d}"
    partial = folder / f".{out.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        save_file(tensors, partial / _TENSORS)
        (partial / _FACTS).write_text(json.dumps(facts) + "\n", "utf-8")
        digests = {name: vars(digest_file(partial / name)) for name in (_TENSORS, _FACTS)}
        (partial / _MANIFEST).write_text(json.dumps(digests, indent=1) + "\n", "utf-8")
        if out.exists():
            shutil.rmtree(out)
        publish_folder(partial, out)
    except (OSError, SafetensorError) as failure:
        shutil.rmtree(partial, ignore_errors=True)
        raise MalmoiError(
            f"{out}: the checkpoint could not be written ({failure}); earlier ones are kept: when there is room, "
            "run the same command again and it goes on."
        ) from None
    # Damaged ones were set aside when the run was taken up, so those that are counted here are good.
    for old in list_checkpoints(folder)[:-keep]:
        shutil.rmtree(old)


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=count_steps)


def take_up_checkpoints(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that verifies, and a sentence for each newer one that does not.

    Those are set aside under another name, where nobody counts them, and what a kill left half written is removed.
    """
    complaints: list[str] = []
    for path in reversed(list_checkpoints(folder)):
        complaint = _verify(path)
        if complaint is None:
            break
        aside = path.with_name(f"{path.name}.damaged")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        complaints.append(f"{complaint}; it is set aside as {aside.name}")
    for path in folder.iterdir() if folder.is_dir() else ():
        if _LEFT_BY_A_KILL.fullmatch(path.name):
            shutil.rmtree(path)
    return max(list_checkpoints(folder), key=count_steps, default=None), complaints


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> int:
    """Restore weights and optimizer, and return the number of steps made."""
    tensors = load_file(path / _TENSORS)
    shapes = {f"{kind}.{name}": one.shape for name, one in model.named_parameters() for kind in _kinds(one)}
    if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
        raise MalmoiError(f"{path}: this checkpoint belongs to another model; choose another --out.")
    facts = json.loads((path / _FACTS).read_text("utf-8"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(divide_like(tensors[f"model.{name}"], parameter))
            if not parameter.requires_grad:
                continue
            state: dict[str, Any] = {moment: divide_like(tensors[f"{moment}.{name}"], parameter) for moment in _MOMENTS}
            # Beside its weight: that is where a fused update on a GPU looks for it.
            state["step"] = torch.tensor(float(facts["updates"]), device=parameter.device)
            optimizer.adamw.state[parameter] = state
    if facts["scaler"]:
        optimizer.scaler.load_state_dict(facts["scaler"])
    return int(facts["steps"])


def require_finite(tensors: Mapping[str, Tensor], steps: int) -> None:
    """Refuse numbers that nothing can be computed with: saved, they would look like a model."""
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise MalmoiError(
                f"after step {steps:,}: the weights are not finite ({name}) and are not saved; what was saved before "
                "is kept. The learning rate is too high: try a lower --lr in another --out."
            )


def count_steps(path: Path) -> int:
    """After how many steps a checkpoint was made."""
    return int(path.name.partition("-")[2])


def _remember(optimizer: Optimizer) -> dict[str, Any]:
    # A step whose half-precision gradients overflow makes no update, so updates are counted apart from steps.
    counts = [int(state["step"]) for state in optimizer.adamw.state.values()]
    return {"updates": max(counts, default=0), "scaler": optimizer.scaler.state_dict()}


def _collect(model: nn.Module, adamw: torch.optim.AdamW) -> dict[str, Tensor]:
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = make_whole(parameter.detach()).cpu()
        state = adamw.state.get(parameter, {})
        for moment in _kinds(parameter)[1:]:
            tensors[f"{moment}.{name}"] = make_whole(state.get(moment, torch.zeros_like(parameter))).cpu()
    return tensors


def _kinds(parameter: nn.Parameter) -> tuple[str, ...]:
    """What is kept of a weight; nothing is remembered of one that is not trained."""
    return ("model", *_MOMENTS) if parameter.requires_grad else ("model",)


def _verify(path: Path) -> str | None:
    """What is wrong with a checkpoint, if anything."""
    try:
        digests = json.loads((path / _MANIFEST).read_text("utf-8"))
        for name in (_TENSORS, _FACTS):
            if vars(digest_file(path / name)) != digests[name]:
                return f"{path / name}: damaged, its bytes have changed since it was written"
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as mistake:
        return f"{path}: damaged ({mistake})"
    return None
