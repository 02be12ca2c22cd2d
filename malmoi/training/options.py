"""How a model is trained: one set of options for the command line and for Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.errors import MalmoiError

# What may differ when a run goes on, because what it learns does not depend on it.
FREE = frozenset({"micro_batch", "save_every", "keep", "shard"})

Schedule = Literal["linear", "cosine", "constant"]
Precision = Literal["fp32", "bf16", "fp16"]


@Parameter(name="*")
@dataclass(frozen=True)
class TrainingOptions:
    """The defaults are BERT's, with a learning rate for small models."""

    steps: Annotated[int, Parameter(help="How many updates; more than before go on with a finished run.")] = 1000
    minutes: Annotated[float | None, Parameter(help="As many updates as fit into this time, instead of --steps.")] = (
        None
    )
    long_seq_len: Annotated[int | None, Parameter(help="Length of the last part of the run, such as 512.")] = None
    long_share: Annotated[float, Parameter(help="How much of the run has that length.")] = 0.1
    batch_size: Annotated[int, Parameter(help="Sequences of an update, over all micro-batches and ranks.")] = 32
    micro_batch: Annotated[int | None, Parameter(help="Sequences computed at once; all of a rank's by default.")] = None
    lr: Annotated[float, Parameter(help="The learning rate at its peak.")] = 5e-4
    warmup_steps: Annotated[int | None, Parameter(help="Steps until the peak; a tenth of all by default.")] = None
    schedule: Annotated[Schedule, Parameter(help="What the learning rate does after the peak.")] = "linear"
    weight_decay: Annotated[float, Parameter(help="Decay of weights, not of biases and norms.")] = 0.01
    clip: Annotated[float, Parameter(help="The largest norm of a gradient.")] = 1.0
    precision: Annotated[Precision, Parameter(help="Arithmetic of the forward pass.")] = "fp32"
    eval_every: Annotated[int, Parameter(help="Steps between evaluations on held-out documents; 0: never.")] = 100
    eval_batches: Annotated[int, Parameter(help="Batches of an evaluation.")] = 8
    eval_share: Annotated[float, Parameter(help="Share of the documents held out.")] = 0.02
    save_every: Annotated[int, Parameter(help="Steps between checkpoints.")] = 500
    keep: Annotated[int, Parameter(help="How many checkpoints are kept.")] = 2
    shard: Annotated[bool, Parameter(negative="", help="Divide the model among the ranks (FSDP2).")] = False

    def __post_init__(self) -> None:
        least = {"steps": 1, "batch_size": 1, "eval_batches": 1, "save_every": 1, "keep": 1, "eval_every": 0}
        if self.warmup_steps is not None:
            least["warmup_steps"] = 0
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise MalmoiError(
                    f"--{name.replace('_', '-')} {getattr(self, name)}: give a whole number from {minimum} on."
                )
        for name in ("lr", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise MalmoiError(f"--{name} {getattr(self, name)}: give a number above 0.")
        if not 0 <= self.weight_decay < math.inf:
            raise MalmoiError(f"--weight-decay {self.weight_decay}: give a number from 0 on, such as 0.01.")
        if not 0 < self.long_share < 1:
            raise MalmoiError(f"--long-share {self.long_share}: give a share between 0 and 1, such as 0.1.")
        if not 0 <= self.eval_share < 1:
            raise MalmoiError(f"--eval-share {self.eval_share}: give a share from 0 to 1, such as 0.02.")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise MalmoiError(f"--minutes {self.minutes}: give a number above 0.")
        if self.minutes is not None and self.shard:
            raise MalmoiError("--minutes tries a few steps on a copy, which --shard has no room for; give --steps.")
        if self.micro_batch is not None and (self.micro_batch < 1 or self.batch_size % self.micro_batch):
            raise MalmoiError(f"--micro-batch {self.micro_batch}: it must divide --batch-size {self.batch_size}.")

        if self.shard and self.precision == "fp16":
            raise MalmoiError("--shard goes with --precision fp32 or bf16; the scale of fp16 is not kept over shards.")

    def count_short(self) -> int:
        """How many steps are made at the first length."""
        return self.steps if self.long_seq_len is None else round(self.steps * (1 - self.long_share))

    def count_warmup(self) -> int:
        return self.steps // 10 if self.warmup_steps is None else self.warmup_steps
