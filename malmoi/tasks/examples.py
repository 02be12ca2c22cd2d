"""What a task's file holds, an object an example. `place` says where it stood ("train.tsv, line 17")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Classified:
    """A text or a pair of texts (classify, pair). Several labels, or none, only with --multi-label; None: not known."""

    text: str
    pair: str | None
    labels: tuple[str, ...] | None
    place: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A text or a pair of texts with a number (regress, embed). For embed, pairs without a score are all alike."""

    text: str
    pair: str | None
    score: float | None
    place: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """Words with a tag each (tag).

    In files that give each character a line, as KLUE's do, the words are single characters and spaces are among them.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    place: str

    def lay_out(self, *, by_characters: bool = False) -> tuple[str, list[tuple[int, int]]]:
        """The sentence as text, and where in it each word begins and ends.

        `by_characters`: the words of the data are characters, so there is nothing between them. Where nobody knows,
        that is taken to be so if all words of the sentence are characters, and spaces among them.
        """
        singles = sum(len(word) == 1 for word in self.words)
        if by_characters:
            is_whole = 2 * singles > len(self.words)
        else:
            is_whole = singles == len(self.words) and any(word.isspace() for word in self.words)
        gap = "" if is_whole else " "
        spans = []
        start = 0
        for word in self.words:
            spans.append((start, start + len(word)))
            start += len(word) + len(gap)
        return gap.join(self.words), spans


@dataclass(frozen=True, slots=True)
class Untagged:
    """A text as it was written, whose words nobody has given (tag, to be answered)."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A piece of a context and the character where it begins."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context (answer). `impossible`: the context does not answer it, so there are no answers."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None
    impossible: bool
    place: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A prompt and the ways it may go on (choose); `answer` numbers the right one from 0."""

    prompt: str
    choices: tuple[str, ...]
    answer: int | None
    place: str


Example = Classified | Scored | Tagged | Question | Choice


@dataclass(frozen=True, slots=True)
class Asked:
    """A row to be answered: its id, or its number from 0 on where there are no ids, its example, None where the row has
    no text, and the values of the columns that are to be kept."""

    id: str | int
    example: Example | Untagged | None
    kept: Mapping[str, Any]
