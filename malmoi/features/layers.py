"""Which layers a vector is made of, and how several become one.

h_0 are the embeddings, h_1 … h_L the layers, h_L the last. "all" are the L layers without the embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from malmoi.errors import MalmoiError

Layers = str | int | Sequence[int]
# A list of numbers is a weighted sum with these weights, one for each layer, used as they are.
_Name = Literal["concat", "mean", "sum"]
Combination = _Name | Sequence[float]

_LAST_OF_MANY = re.compile(r"last(\d+)")
_NAMES = "last, second-to-last, last4, all, a number such as 3 or -2, or several: 9,10,11,12"


def parse_layers(layers: Layers, num_hidden_layers: int) -> tuple[int, ...]:
    """The numbers of the layers, from the embeddings upward, whatever order they were named in."""
    numbers = _numbers(layers, num_hidden_layers)
    count = num_hidden_layers + 1
    for number in numbers:
        if not -count <= number < count:
            raise MalmoiError(
                f"--layers {_show(layers)}: there is no layer {number}; the model has h_0 (the embeddings) to "
                f"h_{num_hidden_layers}."
            )
    chosen = sorted(number % count for number in numbers)
    if not chosen:
        raise MalmoiError(f"--layers: choose {_NAMES}.")
    if len(set(chosen)) < len(chosen):
        raise MalmoiError(f"--layers {_show(layers)}: a layer is named twice.")
    return tuple(chosen)


def parse_combination(combine: str | Sequence[float]) -> Combination:
    """A name, or weights such as 0.2,0.3,0.5."""
    if not isinstance(combine, str):
        return [float(weight) for weight in combine]
    for known in get_args(_Name):
        if combine == known:
            return cast(_Name, known)
    try:
        return [float(weight) for weight in combine.split(",")]
    except ValueError:
        raise MalmoiError(
            f"--combine {combine}: choose concat, mean, sum, or give a weight for each layer: 0.2,0.3,0.5"
        ) from None


def check_combination(combine: Combination, layers: Sequence[int]) -> None:
    if not isinstance(combine, str) and len(combine) != len(layers):
        raise MalmoiError(
            f"--combine: {len(combine)} weights were given for {len(layers)} layers; each layer needs one."
        )


def combine_layers(states: Sequence[NDArray[np.float32]], combine: Combination) -> NDArray[np.float32]:
    """Layers (…, hidden), oldest first → (…, hidden), or (…, layers × hidden) for concat."""
    if combine == "concat":
        return states[0] if len(states) == 1 else np.concatenate(states, axis=-1)
    if isinstance(combine, str):
        weights: Sequence[float] = [1.0 if combine == "sum" else 1.0 / len(states)] * len(states)
    else:
        weights = combine
    total = states[0] * np.float32(weights[0])
    for state, weight in zip(states[1:], weights[1:], strict=True):
        total += state * np.float32(weight)
    return total


def _numbers(layers: Layers, num_hidden_layers: int) -> list[int]:
    if isinstance(layers, int):
        return [layers]
    if not isinstance(layers, str):
        return list(layers)
    name = layers.strip()
    if name == "all":
        return list(range(1, num_hidden_layers + 1))
    if name in ("last", "second-to-last"):
        return [num_hidden_layers if name == "last" else num_hidden_layers - 1]
    if many := _LAST_OF_MANY.fullmatch(name):
        count = int(many[1])
        if not 1 <= count <= num_hidden_layers:
            raise MalmoiError(
                f"--layers {name}: the model has {num_hidden_layers} layers; choose at most last{num_hidden_layers}."
            )
        return list(range(num_hidden_layers - count + 1, num_hidden_layers + 1))
    try:
        return [int(part.strip().removeprefix("h_")) for part in name.split(",")]
    except ValueError:
        raise MalmoiError(f"--layers {layers}: choose {_NAMES}.") from None


def _show(layers: Layers) -> str:
    return str(layers) if isinstance(layers, str | int) else ",".join(map(str, layers))
