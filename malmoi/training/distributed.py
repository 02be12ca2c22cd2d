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
from malmoi.ranks import let_first_rank_speak

# What gloo says of a rank that has ended, by whatever operation it was waited for.
_PEER_GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


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
    except Exception as failure:
        let_first_rank_speak()
        if any(words in str(failure) for words in _PEER_GONE):
            raise MalmoiError(
                "another rank has ended, so this one cannot go on; checkpoints are kept: when what it says is mended, "
                "run the same command again."
            ) from None
        raise
    finally:
        torch.distributed.destroy_process_group()


def choose_device(device: str | None) -> torch.device:
    """The device asked for, or a GPU if there is one. Under torchrun each rank of a machine has its own."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = _take_own(torch.device(device))
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as failure:
        reason = str(failure).splitlines()[0]
        raise MalmoiError(f"--device {device}: torch cannot compute there ({reason}); choose cpu.") from None
    if chosen.type == "cuda" and chosen.index is not None:
        torch.cuda.set_device(chosen)  # for what asks for no device: random numbers, messages between ranks
    return chosen


def _take_own(device: torch.device) -> torch.device:
    """The device of this rank, where there is one for each: written with care but untested on hardware."""
    if device.type == "cpu" or "LOCAL_RANK" not in os.environ:
        return device
    if device.index is None:
        return torch.device(device.type, int(os.environ["LOCAL_RANK"]))
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        raise MalmoiError(f"--device {device}: all ranks of this machine would share it; give {device.type}.")
    return device
