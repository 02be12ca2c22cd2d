"""Weights divided among ranks (FSDP2), for models that outgrow one device.

Each rank keeps a slice of every weight, of its gradient and of what the optimizer remembers of it; a layer is put
together only while it computes. What is saved is whole, so a run can go on with another number of ranks, or undivided.
Tested on gloo; on GPUs it is written with care but untested on hardware.

torch's part of this takes as long to import as half of torch, so divided models and tensors are known by what they can
do, and it is imported only where something is divided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn


def shard_model(model: nn.Module, device: torch.device, ranks: int) -> None:
    """Divide a model in place, layer by layer, so that no device ever holds the whole of it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (ranks,))
    for stack in list(model.modules()):
        if isinstance(stack, nn.ModuleList):
            for layer in stack:
                fully_shard(layer, mesh=mesh)
    # What is outside the layers stays together after the forward pass: the losses use the embeddings again.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    for part in _sharded_parts(model):
        # Gradients are summed over ranks, never averaged; gloo knows no other reduction either.
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)


def is_sharded(model: nn.Module) -> bool:
    return hasattr(model, "reshard")


def put_apart(model: nn.Module) -> None:
    """Divide again what a forward pass without a backward pass has left together."""
    for part in _sharded_parts(model):
        part.reshard()


def make_whole(tensor: Tensor) -> Tensor:
    """A tensor put together from all ranks, each of which has to call this; others stay as they are."""
    whole: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def divide_like(tensor: Tensor, example: Tensor) -> Tensor:
    """This rank's part of a whole tensor, divided and placed as `example` is."""
    tensor = tensor.to(example.device)
    if not hasattr(example, "full_tensor"):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(example, DTensor)
    return distribute_tensor(tensor, example.device_mesh, example.placements, src_data_rank=None)


def _sharded_parts(model: nn.Module) -> Iterator[Any]:
    return (part for part in model.modules() if is_sharded(part))
