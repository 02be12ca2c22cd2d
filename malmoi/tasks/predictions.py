"""What a model for a task answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Classification:
    """The labels of a text, one unless it may have several, and how probable each label is."""

    labels: tuple[str, ...]
    scores: Mapping[str, float]

    @property
    def label(self) -> str:
        """The most probable label."""
        return max(self.scores, key=self.scores.__getitem__)


@dataclass(frozen=True, slots=True)
class Score:
    """The number a model gives to a text or a pair of texts."""

    score: float


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """An entity: its label, its text, and the characters from `start` up to `end` where it stands."""

    label: str
    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Tagging:
    """A tag for each word, with the characters it stands at, and the entities they make."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    entities: tuple[TaggedSpan, ...]


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """A piece of a context, and how probable it is to be the answer."""

    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question, None where the context seems not to hold it, and the best candidates. `margin` is how
    much better no answer is than the best candidate: what --threshold is compared with."""

    answer: FoundSpan | None
    candidates: tuple[FoundSpan, ...]
    no_answer_score: float
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice that fits best, its number from 0, and how probable each one is."""

    index: int
    choice: str
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike two texts are, by the cosine of their vectors; `rank` is that of the second text
    among all that were compared with the first."""

    score: float
    rank: int | None = None
