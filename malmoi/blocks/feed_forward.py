"""The position-wise feed-forward network and the activations that configurations name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from malmoi.errors import MalmoiError

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
    "silu": functional.silu,
    "tanh": functional.tanh,
}


def find_activation(name: str) -> Activation:
    if name not in _ACTIVATIONS:
        raise MalmoiError(f"hidden_act {name!r} is not known; choose one of {', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]


class FeedForward(nn.Module):
    """Out to the intermediate size and back."""

    def __init__(self, hidden_size: int, intermediate_size: int, activation: str) -> None:
        super().__init__()
        self.inner = nn.Linear(hidden_size, intermediate_size)
        self.output = nn.Linear(intermediate_size, hidden_size)
        self._activation = find_activation(activation)

    def forward(self, x: Tensor) -> Tensor:
        outer: Tensor = self.output(self._activation(self.inner(x)))
        return outer
