"""One process or many: torchrun sets the environment, this reads it.

Ranks share the global batch of a step: rank r computes a run of its rows. Gradients and counts are summed, never
averaged, so the update is that of one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from malmoi.errors import MalmoiError


@dataclass(frozen=True)
class World:
    """Which of how many processes this is, and the device it computes on."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum_gradients(self, model: nn.Module) -> None:
        """Add up the gradients of all ranks, in one message."""
        if self.size == 1:
            return
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        flat = torch._utils._flatten_dense_tensors(gradients)
        torch.distributed.all_reduce(flat)
        for gradient, summed in zip(gradients, torch._utils._unflatten_dense_tensors(flat, gradients), strict=True):
            gradient.copy_(summed)

    def sum_numbers(self, numbers: dict[str, float]) -> dict[str, float]:
        """Add up numbers over all ranks."""
        if self.size == 1:
            return numbers
        values = torch.tensor(list(numbers.values()), dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(values)
        return dict(zip(numbers, values.tolist(), strict=True))

    def wait(self) -> None:
        if self.size > 1:
            torch.distributed.barrier()


@contextmanager
def join_world(device: str | None = None, threads: int | None = None) -> Iterator[World]:
    """Take part in the run torchrun has started, or be a world of one."""
    if threads is not None:
        if threads < 1:
            raise MalmoiError(f"--threads {threads}: give a whole number from 1 on.")
        torch.set_num_threads(threads)
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    chosen = choose_device(device)
    if size == 1:
        yield World(0, 1, chosen)
        return
    # NCCL is written with care but untested on hardware; on CPUs it is gloo.
    torch.distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield World(rank, size, chosen)
    finally:
        torch.distributed.destroy_process_group()


def choose_device(device: str | None) -> torch.device:
    """The device asked for, or a GPU if there is one."""
    if device is not None:
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as failure:
            reason = str(failure).splitlines()[0]
            raise MalmoiError(f"--device {device}: torch cannot compute there ({reason}); choose cpu.") from None
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")
