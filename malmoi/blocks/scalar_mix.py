"""A learned weighted sum of layers, as ELMo has it: gamma · Σ softmax(w)_j · h_j."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """One weight a layer and a factor for the whole, learned with the task. At the start it is the mean."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(count))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Tensors (…, hidden), one a layer → (…, hidden)"""
        mixed: Tensor = self.gamma * torch.einsum("j,j...->...", self.scores.softmax(dim=0), torch.stack(tuple(layers)))
        return mixed

    def shares(self) -> list[float]:
        """How much each layer counts: numbers that sum to one."""
        return [float(share) for share in self.scores.detach().softmax(dim=0)]

    def weights(self) -> list[float]:
        """What each layer is multiplied with, gamma included: fit for `combine` of `embed` and `words`."""
        return [float(self.gamma.detach()) * share for share in self.shares()]
