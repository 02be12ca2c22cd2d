"""A record → an example: the values of its columns checked, one mistake a sentence that names the place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from malmoi.errors import MalmoiError
from malmoi.tasks.answers import parse_answers
from malmoi.tasks.columns import Columns, TaskName
from malmoi.tasks.examples import Choice, Classified, Example, Question, Scored, Tagged, Untagged
from malmoi.text.json_records import name_kind
from malmoi.text.records import is_null, read_text

_TRUE = ("1", "true", "yes")
_FALSE = ("0", "false", "no", "")
_WHOLE_NUMBER = re.compile(r"-?\d+\.0+")


class EmptyText(MalmoiError):
    """An example without a text, which --skip-empty leaves out."""


class Row:
    """The values of one record by their roles, and how to complain about them."""

    def __init__(
        self,
        place: str,
        what: str,
        roles: Mapping[str, Sequence[str]],
        values: Sequence[Any],
        value_names: Mapping[str, Sequence[str]],
    ) -> None:
        """`value_names` are what the numbers of a column stand for, where the file says so."""
        self.place = place
        self._value_names = value_names
        self._what = what
        self._names = roles
        self._values: dict[str, list[Any]] = {}
        start = 0
        for role, names in roles.items():
            self._values[role] = list(values[start : start + len(names)])
            start += len(names)

    def has(self, role: str) -> bool:
        return role in self._names

    def name(self, role: str, number: int = 0) -> str:
        return self._names[role][number]

    def values(self, role: str) -> list[Any]:
        return self._values[role]

    def value(self, role: str) -> Any:
        return self._values[role][0]

    def label(self) -> Any:
        """The value of the label, with names for its numbers if there are some."""
        return _name_numbers(self.value("label"), self._value_names.get(self.name("label"), ()))

    def find(self, name: str) -> Any:
        """The value of a column, whatever its role."""
        for role, names in self._names.items():
            if name in names:
                return self._values[role][names.index(name)]
        raise KeyError(name)

    def cell(self, role: str, number: int = 0) -> str:
        """What to call a value in a complaint."""
        return f"{self.place}, {self._what} {self.name(role, number)!r}"

    def text(self, role: str, number: int = 0) -> str:
        """A value that has to be a text."""
        value = self._values[role][number]
        text = read_text(value)
        if text is None:
            raise MalmoiError(f"{self.cell(role, number)}: there should be text here, not {name_kind(value)}")
        if not text.strip():
            null = " (a null counts as empty)" if is_null(value) else ""
            raise EmptyText(
                f"{self.cell(role, number)}: the text is empty{null}; fill it in, "
                "or leave such examples out with --skip-empty"
            )
        return text

    def words(self, role: str) -> tuple[str, ...]:
        """A value that has to be a list of words, or a text with spaces between them."""
        value = self.label() if role == "label" else self.value(role)
        if isinstance(value, str):
            value = value.split()
        if value is None or value == []:
            raise EmptyText(f"{self.cell(role)}: there are no words; leave such examples out with --skip-empty")
        if not isinstance(value, list) or any(isinstance(word, list | dict) for word in value):
            raise MalmoiError(f"{self.cell(role)}: a list of words is wanted here, or a text with spaces between them")
        words = tuple(word if isinstance(word, str) else _spell(word) for word in value)
        if "" in words:
            raise MalmoiError(
                f"{self.cell(role)}: number {words.index('') + 1} of the list is empty; mend or remove it"
            )
        return words


def make_example(task: TaskName, row: Row, columns: Columns, labelled: bool) -> Example | Untagged:
    """The example of one record."""
    if task in ("classify", "pair"):
        labels = _labels(row, columns) if labelled else None
        return Classified(row.text("text"), row.text("pair") if row.has("pair") else None, labels, row.place)
    if task in ("regress", "embed"):
        score = _number(row) if row.has("label") else None
        return Scored(row.text("text"), row.text("pair") if row.has("pair") else None, score, row.place)
    if task == "tag":
        # A text is cut into words as the model wants them; a list holds the words.
        is_text = not labelled and isinstance(row.value("text"), str)
        return Untagged(row.text("text"), row.place) if is_text else _tagged(row)
    return _question(row, labelled) if task == "answer" else _choice(row)


def _labels(row: Row, columns: Columns) -> tuple[str, ...]:
    if len(row.values("label")) > 1:
        flags = [_flag(row, number) for number in range(len(row.values("label")))]
        return tuple(row.name("label", number) for number, flag in enumerate(flags) if flag)
    value = row.label()
    if columns.multi_label:
        if isinstance(value, str):
            value = value.split(columns.label_separator)
        items = value if isinstance(value, list) else [] if value is None else [value]
        return tuple(dict.fromkeys(label for item in items if (label := spell_label(item))))
    if isinstance(value, list | dict):
        raise MalmoiError(
            f"{row.cell('label')}: one label is wanted here, not {name_kind(value)}; give --multi-label for several"
        )
    label = spell_label(value)
    if not label:
        raise MalmoiError(f"{row.cell('label')}: the label is missing; fill it in or take the example out")
    return (label,)


def _flag(row: Row, number: int) -> bool:
    label = spell_label(row.values("label")[number]).lower()
    if label not in _TRUE + _FALSE:
        raise MalmoiError(f"{row.cell('label', number)}: 0 or 1 is wanted here, not {label!r}")
    return label in _TRUE


def spell_label(value: Any) -> str:
    """A label as text. Whole numbers are written alike: 1, 1.0, "1", and "1.0" as pandas writes it into CSV."""
    label = _spell(value)
    return label.partition(".")[0] if _WHOLE_NUMBER.fullmatch(label) else label


def _spell(value: Any) -> str:
    """A value as text; nothing for a null."""
    if is_null(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _name_numbers(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_name_numbers(item, names) for item in value]
    # Numbers without a name stay: -1 stands for no label at all.
    is_named = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names)
    return names[value] if is_named else value


def _number(row: Row) -> float:
    value = row.value("label")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise MalmoiError(
                f"{row.cell('label')}: {value!r} is not a number; write it like 3.5, or take the example out"
            ) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalmoiError(f"{row.cell('label')}: a number is wanted here, not {name_kind(value)}")
    if not math.isfinite(value):
        raise MalmoiError(f"{row.cell('label')}: {value} is no target to train on; mend it or take the example out")
    return float(value)


def _tagged(row: Row) -> Tagged:
    words = row.words("text")
    if not row.has("label"):
        return Tagged(words, None, row.place)
    tags = row.words("label")
    if len(tags) != len(words):
        raise MalmoiError(f"{row.cell('label')}: {len(tags)} tags for {len(words)} words; each word needs one tag")
    return Tagged(words, tags, row.place)


def _question(row: Row, labelled: bool) -> Question:
    question, context = row.text("text"), row.text("pair")
    # A file without ids gets them from its lines.
    id = (_spell(row.value("id")) if row.has("id") else "") or row.place
    if not labelled:
        return Question(id, question, context, None, False, row.place)
    start = row.value("start") if row.has("start") else None
    impossible = None
    if row.has("impossible") and not is_null(row.value("impossible")):
        impossible = _spell(row.value("impossible")).lower() in _TRUE
    answers, is_impossible = parse_answers(row.value("label"), start, impossible, row.cell("label"))
    return Question(id, question, context, answers, is_impossible, row.place)


def _choice(row: Row) -> Choice:
    prompt = row.text("text")
    value = row.value("choices")
    if len(row.values("choices")) > 1:
        choices: Any = [row.text("choices", number) for number in range(len(row.values("choices")))]
    else:
        # As in the files of ARC and CommonsenseQA: {"label": ["A", …], "text": [… , …]}.
        choices = value.get("text") if isinstance(value, dict) else value
        if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
            raise MalmoiError(
                f"{row.cell('choices')}: a list of texts is wanted here; or name a column for each choice: "
                "--choices ending0,ending1"
            )
        if not all(choice.strip() for choice in choices):
            raise EmptyText(f"{row.cell('choices')}: a choice is empty; leave such examples out with --skip-empty")
    if len(choices) < 2:
        raise MalmoiError(f"{row.cell('choices')}: at least two choices are needed, {len(choices)} found")
    answer = _number_of_answer(row, choices) if row.has("label") else None
    return Choice(prompt, tuple(choices), answer, row.place)


def _number_of_answer(row: Row, choices: Sequence[str]) -> int:
    """The right choice, given by its number from 0 on, its letter from A on, or its text."""
    said = _spell(row.value("label"))
    number = spell_label(said)
    if number.isdecimal() and int(number) < len(choices):
        return int(number)
    if len(said) == 1 and "A" <= said < chr(ord("A") + len(choices)):
        return ord(said) - ord("A")
    if choices.count(said) == 1:
        return choices.index(said)
    raise MalmoiError(
        f"{row.cell('label')}: {said!r} names none of the {len(choices)} choices; "
        f"give a number from 0 to {len(choices) - 1}, a letter from A on, or the choice itself"
    )
