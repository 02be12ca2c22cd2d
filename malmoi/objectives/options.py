"""What examples are made of: one set of options for `inspect`, for training, and for Python."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.errors import MalmoiError

# No model and no run comes near it, and the arithmetic of numpy holds it.
_MOST = 1 << 30

Objective = Literal["mlm+nsp", "mlm"]


@Parameter(name="*")
@dataclass(frozen=True)
class ExampleOptions:
    """What examples are made of; the defaults are the published ones."""

    objective: Annotated[Objective, Parameter(help="Masked words in next-sentence pairs, or in packed text.")] = (
        "mlm+nsp"
    )
    seq_len: Annotated[int, Parameter(help="Positions of a sequence.")] = 128
    whole_words: Annotated[bool, Parameter(negative="", help="Mask all pieces of a word or none.")] = False
    mask_share: Annotated[float, Parameter(help="Share of the tokens to be predicted.")] = 0.15
    max_predictions: Annotated[
        int | None, Parameter(help="At most so many in a sequence; by default the share of a full one.")
    ] = None
    short_share: Annotated[float, Parameter(help="Share of documents that make shorter pairs.")] = 0.1
    duplicates: Annotated[
        int | None, Parameter(help="Make so many fixed versions of each example, instead of new ones at every visit.")
    ] = None
    seed: Annotated[int, Parameter(help="Another seed gives other examples.")] = 0

    def __post_init__(self) -> None:
        if self.seq_len < 8:
            raise MalmoiError(f"--seq-len {self.seq_len}: a sequence needs at least 8 positions.")
        for name in ("seq_len", "max_predictions", "duplicates"):
            if (getattr(self, name) or 0) > _MOST:
                raise MalmoiError(f"--{name.replace('_', '-')} {getattr(self, name)}: give at most {_MOST:,}.")
        if not 0 < self.mask_share < 1:
            raise MalmoiError(f"--mask-share {self.mask_share}: give a share between 0 and 1, such as 0.15.")
        if not 0 <= self.short_share <= 1:
            raise MalmoiError(f"--short-share {self.short_share}: give a share from 0 to 1, such as 0.1.")
        if self.max_predictions is not None and self.max_predictions < 1:
            raise MalmoiError(f"--max-predictions {self.max_predictions}: at least one token must be predicted.")
        if self.duplicates is not None and self.duplicates < 1:
            raise MalmoiError(f"--duplicates {self.duplicates}: at least one version is needed.")
        if not 0 <= self.seed < 1 << 63:
            raise MalmoiError(f"--seed {self.seed}: give a whole number from 0 to 2**63 - 1.")

    def spell(self) -> str:
        """The options that differ from the defaults, as they are written on the command line."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                name = f"--{field.name.replace('_', '-')}"
                words.append(name if value is True else f"{name} {value}")
        return " ".join(words)

    def count_predictions(self) -> int:
        """How many tokens of a sequence are predicted at the most."""
        return self.max_predictions or math.ceil(self.seq_len * self.mask_share)
