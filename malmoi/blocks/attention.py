"""Scaled dot-product attention: one function for every system.

B sequences, H heads, T queries, S keys, D dimensions of a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from malmoi.blocks.dropout import drop


def attend(
    query: Tensor,  # (B, H, T, D)
    key: Tensor,  # (B, H, S, D)
    value: Tensor,  # (B, H, S, D)
    *,
    mask: Tensor | None = None,  # broadcast to (B, H, T, S): True where a query may look
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """What each query gathers from the values. (B, H, T, D)"""
    if dropout == 0.0 or query.device.type != "cpu":
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale
        )
    # On a CPU torch has no fused kernel with dropout, and its fallback draws a random number for each weight.
    return drop(weigh(query, key, mask=mask, scale=scale), dropout) @ value


def weigh(query: Tensor, key: Tensor, *, mask: Tensor | None = None, scale: float | None = None) -> Tensor:
    """How much of each key a query takes: rows that sum to one. (B, H, T, S)"""
    scores = query * (scale if scale is not None else 1 / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
    if mask is not None:
        # The smallest number, not minus infinity: a row without any key becomes uniform instead of undefined.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself. Queries, keys and values come from one matrix multiplication."""

    def __init__(self, hidden_size: int, heads: int, dropout: float, *, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=bias)
        self.output = nn.Linear(hidden_size, hidden_size, bias=bias)

    def forward(
        self,
        x: Tensor,  # (B, T, hidden)
        mask: Tensor | None = None,
        head_mask: Tensor | None = None,  # (H,): how much of each head counts
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        batch, length, size = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (B, H, T, D)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if head_mask is None and not output_attentions:
            gathered = attend(query, key, value, mask=mask, dropout=dropout)
        else:
            weights = weigh(query, key, mask=mask)
            if dropout:
                weights = drop(weights, dropout)
            if head_mask is not None:
                weights = weights * head_mask.view(-1, 1, 1)
            gathered = weights @ value
        joined = gathered.transpose(1, 2).reshape(batch, length, size)  # (B, T, hidden)
        return self.output(joined), weights
