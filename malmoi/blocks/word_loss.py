"""Cross-entropy over the vocabulary, as a sum, without keeping the logits.

The logits of a few hundred predictions are the largest tensor of a small model's step: written, normalised, kept, and
read again in the backward pass. Here they are made a slice at a time, and each slice is turned into its own gradient at
once; what is left of it are the gradients of the inputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_ROWS = 256


def sum_word_loss(hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy of predictions, and how many were right. hidden (M, D), weight (V, D), labels (M,)"""
    # Types are chosen there; autocast would choose others inside of it.
    with torch.autocast(hidden.device.type, enabled=False):
        loss, right = _WordLoss.apply(hidden, weight, bias, labels)  # type: ignore[no-untyped-call]
    return loss, right


class _WordLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> tuple[Tensor, Tensor]:
        gradients = _Gradients(hidden, weight, bias) if any(ctx.needs_input_grad) else None
        loss = torch.zeros((), device=hidden.device)
        right = torch.zeros((), dtype=torch.int64, device=hidden.device)
        matrix, offset = weight.to(hidden.dtype), None if bias is None else bias.to(hidden.dtype)
        for begin in range(0, len(hidden), _ROWS):
            rows = hidden[begin : begin + _ROWS]  # (R, D)
            answers = labels[begin : begin + _ROWS, None]  # (R, 1)
            logits = rows @ matrix.t() if offset is None else torch.addmm(offset, rows, matrix.t())  # (R, V)
            logits = logits.float()
            largest, best = logits.max(dim=1, keepdim=True)
            right += (best == answers).sum()
            answer_logits = logits.gather(1, answers)
            shares = logits.softmax(dim=1)
            # The logarithm of the sum of exponentials, from the best word's share, which is never too small for it.
            loss += (largest - shares.gather(1, best).log() - answer_logits).sum()
            if gradients is not None:
                shares.scatter_add_(1, answers, torch.full_like(answer_logits, -1.0))
                gradients.add(begin, shares)
        ctx.gradients = gradients
        ctx.mark_non_differentiable(right)
        return loss, right

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        gradients: _Gradients = ctx.gradients
        ctx.gradients = None
        for tensor in (gradients.hidden, gradients.weight, gradients.bias):
            if tensor is not None:
                tensor.mul_(outer[0])
        return gradients.hidden, gradients.weight, gradients.bias, None


class _Gradients:
    """The gradients of the inputs, added up slice by slice."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        # Half precision cannot hold most shares: they are too small for it while the loss is not scaled yet.
        dtype = torch.float32 if hidden.dtype == torch.float16 else hidden.dtype
        self._inputs = hidden.to(dtype), weight.to(dtype)
        self.hidden = torch.empty_like(hidden)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(self, begin: int, logits: Tensor) -> None:
        """Take in the gradient of the logits (R, V) of the rows from `begin` on."""
        hidden, weight = self._inputs
        end = begin + len(logits)
        if self.bias is not None:
            self.bias += logits.sum(dim=0)
        logits = logits.to(hidden.dtype)
        if hidden.dtype == self.hidden.dtype == self.weight.dtype:
            torch.mm(logits, weight, out=self.hidden[begin:end])
            self.weight.addmm_(logits.t(), hidden[begin:end])
        else:
            self.hidden[begin:end] = logits @ weight
            self.weight += logits.t() @ hidden[begin:end]
