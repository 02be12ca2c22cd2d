"""How many steps a run has: as asked for at its beginning, and as changed since.

Learning rate and length of a step follow from its number and from how many steps the run was to have when it was made.
Where that changes later (more --steps, or --minutes on a machine that is slower than it looked), the turn is noted
before the first step that it holds for is made. So a resumed run repeats every step as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from malmoi.training.options import TrainingOptions

# A course is looked over so many times in a run, and changed if it is off by so much of what is left.
_REVIEWS, _TOLERANCE = 20, 0.02


class Course:
    """The options of a run by step. All but the number of steps are the same throughout."""

    def __init__(self, options: TrainingOptions, turns: Iterable[tuple[int, int]] = ()) -> None:
        """`turns` are pairs: from this step on, so many steps in all."""
        self._options = options
        self.turns = list(turns) or [(0, options.steps)]

    @property
    def total(self) -> int:
        """How many steps the run has, by what is known now."""
        return self.turns[-1][1]

    def at(self, step: int) -> TrainingOptions:
        """The options as they are for a step."""
        total = next(total for begin, total in reversed(self.turns) if begin <= step or begin == 0)
        return replace(self._options, steps=total)

    def turn(self, step: int, total: int) -> None:
        """From `step` on the run has `total` steps; turns that were to come later are forgotten."""
        self.turns = [(begin, before) for begin, before in self.turns if begin < step] + [(step, total)]

    def is_review(self, done: int) -> bool:
        """Whether it is time to look whether the steps left fit the time left."""
        return done % max(1, self.total // _REVIEWS) == 0

    def fit(self, done: int, elapsed: float, seconds: float) -> int | None:
        """How many steps in all fit into `seconds`, of which `elapsed` went by for the `done` first ones; None where
        the course is right as it is."""
        left = max(0.0, seconds - elapsed) / max(elapsed / done, 1e-9)
        off = abs(done + left - self.total) > _TOLERANCE * (self.total - done)
        return done + int(left) if off else None
