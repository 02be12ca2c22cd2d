"""How a model is fine-tuned: one set of options for the command line and for Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.training.options import Precision, Schedule, TrainingOptions

ClassWeights = Literal["equal", "balanced"]

# The published rates: the wider the model, the smaller the steps.
_RATES = ((128, 3e-4), (256, 1e-4), (512, 5e-5), (768, 3e-5))
_LARGE_RATE, _HEAD_RATE = 2e-5, 1e-3


@Parameter(name="*")
@dataclass(frozen=True)
class FinetuningOptions:
    """The defaults are the published ones."""

    epochs: Annotated[int, Parameter(help="How often every example is seen.")] = 3
    batch_size: Annotated[int, Parameter(help="Examples of an update, over all micro-batches and ranks.")] = 32
    micro_batch: Annotated[int | None, Parameter(help="Examples computed at once; all of a rank's by default.")] = None
    lr: Annotated[float | None, Parameter(help="The learning rate at its peak; by default by the model's width.")] = (
        None
    )
    warmup_share: Annotated[float, Parameter(help="Share of the steps until the peak.")] = 0.1
    schedule: Annotated[Schedule, Parameter(help="What the learning rate does after the peak.")] = "linear"
    weight_decay: Annotated[float, Parameter(help="Decay of weights, not of biases and norms.")] = 0.01
    clip: Annotated[float, Parameter(help="The largest norm of a gradient.")] = 1.0
    layer_decay: Annotated[float, Parameter(help="Each layer learns with so much of the rate of the one above.")] = 1.0
    freeze: Annotated[bool, Parameter(negative="", help="Train the head alone; the encoder stays as it is.")] = False
    dropout: Annotated[float | None, Parameter(help="Dropout before the head; the encoder's by default.")] = None
    class_weights: Annotated[ClassWeights, Parameter(help="balanced: rare labels count more.")] = "equal"
    seq_len: Annotated[
        int | None,
        Parameter(help="Longest sequence; by default as the examples are (384 for answer)."),
    ] = None
    stride: Annotated[int, Parameter(help="Tokens that windows of a long context share (answer).")] = 128
    max_answer: Annotated[int, Parameter(help="Tokens of the longest answer (answer).")] = 30
    threshold: Annotated[
        float, Parameter(help="How much better no answer has to be than the best one to be taken (answer).")
    ] = 0.0
    scale: Annotated[float, Parameter(help="Factor of the cosines of pairs without scores (embed).")] = 20.0
    metric: Annotated[str | None, Parameter(help="The figure on --dev that decides; the task's own by default.")] = None
    patience: Annotated[
        int | None, Parameter(help="Stop after so many evaluations on --dev that bring nothing better.")
    ] = None
    eval_every: Annotated[int | None, Parameter(help="Steps between evaluations; an epoch by default.")] = None
    save_every: Annotated[int, Parameter(help="Steps between checkpoints.")] = 500
    keep: Annotated[int, Parameter(help="How many checkpoints are kept.")] = 2
    precision: Annotated[Precision, Parameter(help="Arithmetic of the forward pass.")] = "fp32"
    seed: Annotated[int, Parameter(help="Another seed gives another head, order and dropout.")] = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "max_answer", "patience", "eval_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise MalmoiError(f"--{name.replace('_', '-')} {value}: give a whole number from 1 on.")
        for name in ("warmup_share", "dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise MalmoiError(f"--{name.replace('_', '-')} {value}: give a share from 0 to 1, such as 0.1.")
        if not 0 < self.layer_decay <= 1:
            raise MalmoiError(f"--layer-decay {self.layer_decay}: give a number above 0, up to 1.")
        if self.stride < 0:
            raise MalmoiError(f"--stride {self.stride}: give a whole number from 0 on.")
        if not 0 <= self.seed < 1 << 63:
            raise MalmoiError(f"--seed {self.seed}: give a whole number from 0 to 2**63 - 1.")
        self.plan(1, 1)  # which looks at the rest

    def plan(self, steps_an_epoch: int, hidden_size: int) -> TrainingOptions:
        """The same in the terms of the training loop: steps instead of epochs."""
        steps = self.epochs * steps_an_epoch
        return TrainingOptions(
            steps=steps,
            batch_size=self.batch_size,
            micro_batch=self.micro_batch,
            lr=self.lr if self.lr is not None else self._choose_rate(hidden_size),
            warmup_steps=int(steps * self.warmup_share),
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            clip=self.clip,
            precision=self.precision,
            eval_every=self.eval_every or steps_an_epoch,
            save_every=self.save_every,
            keep=self.keep,
        )

    def _choose_rate(self, hidden_size: int) -> float:
        if self.freeze:
            return _HEAD_RATE
        return next((rate for width, rate in _RATES if hidden_size <= width), _LARGE_RATE)
