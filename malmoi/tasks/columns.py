"""Which columns of a file hold what a task needs: as the user says, else by their usual names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.text.records import list_names, require_field

TaskName = Literal["classify", "pair", "regress", "tag", "answer", "choose", "embed"]
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
TaskFormat = Literal["auto", "csv", "tsv", "jsonl", "parquet", "conll", "squad", "lines"]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """Where in a file a task finds what it needs. A column that is not given is found by its usual names."""

    text: Annotated[str | None, Parameter(help="Column of the text; of the words, the question, the prompt.")] = None
    pair: Annotated[str | None, Parameter(help="Column of the second text; of a question's context.")] = None
    label: Annotated[
        str | None,
        Parameter(help="Column of the label; of the score, the tags, the answers, the right choice's number."),
    ] = None
    choices: Annotated[
        str | None, Parameter(help="Column of a list of choices, or a column for each: ending0,ending1,…")
    ] = None
    id: Annotated[str | None, Parameter(help="Column of the id; one that is called so, or rows are counted.")] = None
    multi_label: Annotated[
        bool,
        Parameter(
            negative="",
            help="An example may have several labels or none: a list, or a text with --label-separator; "
            "or --label a,b,c names columns of 0 and 1.",
        ),
    ] = False
    label_separator: Annotated[str, Parameter(help="What stands between several labels of a text.")] = ","
    no_header: Annotated[
        bool, Parameter(name="--no-header", negative="", help="There is no header: columns are called 0, 1, 2, ….")
    ] = False
    skip_empty: Annotated[bool, Parameter(negative="", help="Leave out examples with an empty text.")] = False
    skip_label: Annotated[
        str | None, Parameter(help="Leave out examples with this label, such as --skip-label=- in SNLI.")
    ] = None
    format: Annotated[TaskFormat, Parameter(help="What the files are; auto goes by endings and contents.")] = "auto"
    encoding: Annotated[str, Parameter(help="auto, or a name such as utf-8, cp949, utf-16.")] = "auto"

    def __post_init__(self) -> None:
        if self.format not in get_args(TaskFormat):
            raise MalmoiError(f"--format {self.format}: choose one of {', '.join(get_args(TaskFormat))}")
        if not self.label_separator:
            raise MalmoiError("--label-separator: give at least one character, such as a comma.")


# Usual names, in lower case: the first line of which one is there decides, and if two of it are, nobody can tell.
_Names = tuple[tuple[str, ...], ...]
_TEXT: _Names = (
    ("text",),
    ("sentence", "document", "review", "content", "comment", "utterance"),
    ("title", "headline", "question", "query"),
)
_ID: _Names = (("id",), ("guid", "qid", "question_id"))
_LABEL: _Names = (
    ("label",),
    ("gold_label", "labels"),
    ("class", "category", "target", "topic", "topic_idx", "sentiment", "intent", "emotion", "is_duplicate"),
)
_SCORE: _Names = (
    ("score",),
    ("label", "labels.label"),
    ("similarity", "similarity_score", "target", "rating", "value"),
)
_CONTEXT: _Names = (("context",), ("passage", "paragraph", "document"))
_PROMPT: _Names = (("prompt",), ("context", "ctx", "premise", "startphrase"), ("question", "text", "sentence"))
_PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("query", "passage"),
    ("anchor", "positive"),
    ("text", "pair"),
    ("text", "text_pair"),
)
_NUMBERED_CHOICE = re.compile(r"(choice|ending|option|alternative|answer)[_ ]?(\d+|[a-h])", re.IGNORECASE)


class ColumnChoice:
    """Chooses the columns of one file, and keeps which of them plays which role (text, pair, label, …).

    Rows that are to be answered have an id, and some of their columns are `kept` under a name.
    """

    def __init__(self, task: TaskName, columns: Columns, labelled: bool, what: str, keep: Sequence[str] = ()) -> None:
        self.what = what
        self.roles: dict[str, list[str]] = {}
        self.kept: dict[str, str] = {}
        self._task = task
        self._columns = columns
        self._labelled = labelled
        self._keep = keep
        self._names: list[str] = []
        self._place = ""

    def __call__(self, kinds: Mapping[str, str], place: str) -> list[str]:
        self._names, self._place = list(kinds), place
        if self.roles:
            # A later JSON record that lacks a field of the earlier ones.
            for name in (name for names in self.roles.values() for name in names):
                require_field(name, self._names, place, self.what)
        else:
            self.roles = {role: names for role, names in self._find_roles().items() if names}
            if not self._labelled:
                self._find_id()
                self._find_kept(self._keep)
        return [name for names in self.roles.values() for name in names]

    def _find_roles(self) -> dict[str, list[str]]:
        columns, task, roles = self._columns, self._task, dict[str, list[str]]()
        if task == "tag":
            usual: _Names = (("words", "tokens"),)
            roles["text"] = self._find("text", columns.text, usual if self._labelled else usual + _TEXT, "the words")
            if self._labelled:
                names: _Names = (("tags",), ("ner_tags", "labels"), ("label", "pos_tags"))
                roles["label"] = self._find("label", columns.label, names, "the tags")
        elif task == "answer":
            roles["id"] = self._guess(_ID)[:1] if columns.id is None else [self._require("id", columns.id)]
            roles["text"] = self._find("text", columns.text, (("question",),), "the question")
            roles["pair"] = self._find("pair", columns.pair, _CONTEXT, "the context")
            if self._labelled:
                names = (("answers",), ("answer", "answer_text"))
                roles["label"] = self._find("label", columns.label, names, "the answers")
                roles["start"] = self._guess((("answer_start",),))[:1]
                roles["impossible"] = self._guess((("is_impossible",),))[:1]
        elif task == "choose":
            roles["text"] = self._find("text", columns.text, _PROMPT, "the prompt")
            roles["choices"] = self._find_choices()
            if self._labelled:
                names = (("label",), ("answer", "answerkey", "answer_idx", "gold"))
                roles["label"] = self._find("label", columns.label, names, "the number of the right choice")
        else:
            roles |= self._find_texts()
            if self._labelled:
                roles["label"] = self._find_label()
        return roles

    def _find_id(self) -> None:
        usual = self._guess(_ID)[:1]
        found = usual if self._columns.id is None else [self._require("id", self._columns.id)]
        if found:
            self.roles["id"] = found

    def _find_kept(self, keep: Sequence[str]) -> None:
        """Columns that are kept, by their names, or by what they are: text, pair, id."""
        self.kept = {
            name: name if name in self._names or name not in self.roles else self.roles[name][0] for name in keep
        }
        known = {name for names in self.roles.values() for name in names}
        if others := [self._require("keep", name) for name in self.kept.values() if name not in known]:
            self.roles["keep"] = others

    def _find_texts(self) -> dict[str, list[str]]:
        """One text for classify unless a pair is asked for, two for pair, and for the others as many as there are."""
        columns = self._columns
        if self._task != "classify":
            lowered = {name.lower(): name for name in reversed(self._names)}
            pairs = [(lowered[one], lowered[two]) for one, two in _PAIRS if one in lowered and two in lowered]
            fitting = [(one, two) for one, two in pairs if columns.text in (None, one) and columns.pair in (None, two)]
            if len(fitting) == 1:
                return {"text": [fitting[0][0]], "pair": [fitting[0][1]]}
        needs_pair = self._task == "pair" or (self._task == "embed" and self._labelled)
        text_names = () if needs_pair or columns.pair else _TEXT
        found = {"text": self._find("text", columns.text, text_names, "the text")}
        if needs_pair or columns.pair:
            found["pair"] = self._find("pair", columns.pair, (), "the second text")
        return found

    def _find_label(self) -> list[str]:
        columns = self._columns
        if self._task in ("regress", "embed"):
            if self._task == "embed" and columns.label is None and not self._guess(_SCORE):
                return []
            return self._find("label", columns.label, _SCORE, "the score")
        if columns.multi_label and columns.label and columns.label not in self._names:
            return [self._require("label", name) for name in columns.label.split(",")]
        return self._find("label", columns.label, _LABEL, "the label")

    def _find_choices(self) -> list[str]:
        given = self._columns.choices
        if given is not None and given not in self._names:
            return [self._require("choices", name) for name in given.split(",")]
        if given is None:
            numbered = [name for name in self._names if _NUMBERED_CHOICE.fullmatch(name)]
            if len(numbered) >= 2:
                return sorted(numbered, key=lambda name: (len(name), name.lower()))
        names = (("choices", "endings", "options", "alternatives"),)
        return self._find("choices", given, names, "the choices")

    def _find(self, option: str, given: str | None, usual: _Names, meaning: str) -> list[str]:
        if given is not None:
            return [self._require(option, given)]
        found = self._guess(usual)
        if len(found) == 1:
            return found
        self._refuse_data_as_header()
        listed = list_names(self._names)
        if found:
            raise MalmoiError(
                f"{self._place}: both {found[0]!r} and {found[1]!r} may hold {meaning}; "
                f"give --{option} with one of {listed}"
            )
        number = " by its number" if self._columns.no_header else ""
        raise MalmoiError(
            f"{self._place}: which {self.what} holds {meaning}? Give --{option}{number} with one of {listed}"
        )

    def _guess(self, usual: _Names) -> list[str]:
        for names in usual:
            if found := [name for name in self._names if name.lower() in names]:
                return found
        return []

    def _require(self, option: str, name: str) -> str:
        if name not in self._names:
            self._refuse_data_as_header()
        try:
            found = require_field(name, self._names, self._place, self.what)
        except MalmoiError as mistake:
            number = name.isdecimal() and self.what == "column" and not self._columns.no_header
            hint = "; give --no-header if the file has none" if number else f" (--{option})"
            raise MalmoiError(f"{mistake}{hint}") from None
        return found

    def _refuse_data_as_header(self) -> None:
        """Where no column was found: a first line that cannot be a header is the first example."""
        if self.what == "column" and not self._columns.no_header and _looks_like_data(self._names):
            shown = " | ".join(name if len(name) <= 24 else name[:24] + "…" for name in self._names[:4])
            raise MalmoiError(
                f"{self._place}: this line looks like data, not like a header ({shown}); "
                "give --no-header and the columns by number, such as --text 1 --label 0"
            )


def _looks_like_data(names: Sequence[str]) -> bool:
    # The first name is empty where pandas has written its index.
    return any(
        (place and not name.strip()) or len(name) > 40 or len(name.split()) > 3 or _is_number(name)
        for place, name in enumerate(names)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
