"""AdamW with the usual exclusions, and the learning rate of a step."""

from __future__ import annotations

import math

import torch
from torch import nn

from malmoi.training.options import TrainingOptions

_BETAS = (0.9, 0.999)
_EPSILON = 1e-6


def make_optimizer(model: nn.Module, options: TrainingOptions) -> torch.optim.AdamW:
    """Weights decay, biases and norms do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [one for one in parameters if one.dim() > 1], "weight_decay": options.weight_decay},
        {"params": [one for one in parameters if one.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=options.lr, betas=_BETAS, eps=_EPSILON, fused=True)


def find_learning_rate(step: int, options: TrainingOptions) -> float:
    """The learning rate of the step with this number, counted from 0."""
    warmup = options.count_warmup()
    if step < warmup:
        return options.lr * (step + 1) / warmup
    if options.schedule == "constant":
        return options.lr
    done = (step - warmup) / max(1, options.steps - warmup)
    return options.lr * (1 - done if options.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
