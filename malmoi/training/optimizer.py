"""AdamW with the usual exclusions, the scale of half-precision losses, and the learning rate of a step."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from malmoi.training.distributed import World
from malmoi.training.options import TrainingOptions
from malmoi.training.sharding import is_sharded, make_whole

_BETAS = (0.9, 0.999)
_EPSILON = 1e-6


class Optimizer:
    """Turns gradients into updates. It holds all that an update remembers of those before it."""

    def __init__(
        self,
        model: nn.Module,
        options: TrainingOptions,
        world: World,
        factors: Callable[[str], float] = lambda name: 1.0,
    ) -> None:
        """`factors` gives for the name of a weight the share of the learning rate that it is trained with."""
        self._model, self._options, self._world = model, options, world
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                decay = options.weight_decay if parameter.dim() > 1 else 0.0  # not of biases and norms
                groups.setdefault((decay, factors(name)), []).append(parameter)
        self._factors = [factor for _, factor in groups]
        self.adamw = torch.optim.AdamW(
            [{"params": members, "weight_decay": decay} for (decay, _), members in groups.items()],
            lr=options.lr,
            betas=_BETAS,
            eps=_EPSILON,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=options.precision == "fp16")

    def backward(self, loss: Tensor) -> None:
        self.scaler.scale(loss).backward()

    def combine_gradients(self) -> float:
        """Sum the gradients of all ranks and clip them; returns their norm before that."""
        # Summed before they are unscaled: an overflow on one rank is then one on all, and all leave the step out.
        if not is_sharded(self._model):  # else the backward pass has done it
            self._world.sum_gradients(self._model)
        self.scaler.unscale_(self.adamw)
        return float(make_whole(nn.utils.clip_grad_norm_(self._model.parameters(), self._options.clip)))

    @property
    def tolerates_overflow(self) -> bool:
        """Whether gradients that are not finite are left out and met by a smaller scale."""
        return self.scaler.is_enabled()

    def update(self, rate: float) -> None:
        for group, factor in zip(self.adamw.param_groups, self._factors, strict=True):
            group["lr"] = rate * factor
        self.scaler.step(self.adamw)
        self.scaler.update()
        self.adamw.zero_grad(set_to_none=True)


def find_learning_rate(step: int, options: TrainingOptions) -> float:
    """The learning rate of the step with this number, counted from 0."""
    warmup = options.count_warmup()
    if step < warmup:
        return options.lr * (step + 1) / warmup
    if options.schedule == "constant":
        return options.lr
    done = (step - warmup) / max(1, options.steps - warmup)
    return options.lr * (1 - done if options.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
