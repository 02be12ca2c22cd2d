"""Which columns of a file hold what a task needs: as the user says, else by their usual names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.text.fields import TEXT_NAMES, Names, require_field
from malmoi.text.files import fields_of
from malmoi.text.recognition import FileOptions
from malmoi.text.sources import SourceReport

TaskName = Literal["classify", "pair", "regress", "tag", "answer", "choose", "embed"]
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
TaskFormat = Literal["auto", "csv", "tsv", "jsonl", "parquet", "conll", "squad", "lines"]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns(FileOptions):
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
    skip_empty: Annotated[bool, Parameter(negative="", help="Leave out examples with an empty text.")] = False
    skip_label: Annotated[
        str | None, Parameter(help="Leave out examples with this label, such as --skip-label=- in SNLI.")
    ] = None
    format: Annotated[TaskFormat, Parameter(help="What the files are; auto goes by endings and contents.")] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format not in get_args(TaskFormat):
            raise MalmoiError(f"--format {self.format}: choose one of {', '.join(get_args(TaskFormat))}")
        if not self.label_separator:
            raise MalmoiError("--label-separator: give at least one character, such as a comma.")


# A task may be about titles, which nobody would take for a corpus.
_TEXT: Names = (*TEXT_NAMES, ("title", "headline", "question", "query"))
_ID: Names = (("id",), ("guid", "qid", "question_id"))
_LABEL: Names = (
    ("label",),
    ("gold_label", "labels"),
    ("class", "category", "target", "topic", "topic_idx", "sentiment", "intent", "emotion", "is_duplicate"),
)
_SCORE: Names = (
    ("score",),
    ("label", "labels.label"),
    ("similarity", "similarity_score", "target", "rating", "value"),
)
_CONTEXT: Names = (("context",), ("passage", "paragraph", "document"))
_PROMPT: Names = (("prompt",), ("context", "ctx", "premise", "startphrase"), ("question", "text", "sentence"))
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


# What a record may do without.
_OPTIONAL_ROLES = frozenset({"id", "start", "impossible"})


class ColumnChoice:
    """Chooses the columns of one file, and keeps which of them plays which role (text, pair, label, …).

    Rows that are to be answered have an id, and some of their columns are `kept` under a name.
    """

    def __init__(
        self, task: TaskName, columns: Columns, labelled: bool, report: SourceReport, keep: Sequence[str] = ()
    ) -> None:
        self.roles: dict[str, list[str]] = {}
        self.kept: dict[str, str] = {}
        self._task = task
        self._columns = columns
        self._labelled = labelled
        self._keep = keep
        self._report = report
        self._fields = fields_of(report, [], report.path)

    def __call__(self, kinds: Mapping[str, str], place: str) -> list[str]:
        self._fields = fields_of(self._report, list(kinds), place)
        if self.roles:
            # A later JSON record that lacks a field of the others.
            for role, names in self.roles.items():
                for name in names if role not in _OPTIONAL_ROLES else ():
                    require_field(name, self._fields.names, place, self.what)
        else:
            self.roles = {role: names for role, names in self._find_roles().items() if names}
            if not self._labelled:
                self._find_id()
                self._find_kept(self._keep)
        return [name for names in self.roles.values() for name in names]

    @property
    def what(self) -> str:
        """What to call a field of this file."""
        return self._fields.what

    def _find_roles(self) -> dict[str, list[str]]:
        columns, task, roles = self._columns, self._task, dict[str, list[str]]()
        if task == "tag":
            usual: Names = (("words", "tokens"),)
            roles["text"] = self._find("text", columns.text, usual if self._labelled else usual + _TEXT, "the words")
            if self._labelled:
                names: Names = (("tags",), ("ner_tags", "labels"), ("label", "pos_tags"))
                roles["label"] = self._find("label", columns.label, names, "the tags")
        elif task == "answer":
            roles["id"] = (
                self._fields.guess(_ID)[:1] if columns.id is None else [self._fields.require("id", columns.id)]
            )
            roles["text"] = self._find("text", columns.text, (("question",),), "the question")
            roles["pair"] = self._find("pair", columns.pair, _CONTEXT, "the context")
            if self._labelled:
                names = (("answers",), ("answer", "answer_text"))
                roles["label"] = self._find("label", columns.label, names, "the answers")
                roles["start"] = self._fields.guess((("answer_start",),))[:1]
                roles["impossible"] = self._fields.guess((("is_impossible",),))[:1]
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
        given = self._columns.id
        found = self._fields.guess(_ID)[:1] if given is None else [self._fields.require("id", given)]
        if found:
            self.roles["id"] = found

    def _find_kept(self, keep: Sequence[str]) -> None:
        """Columns that are kept, by their names, or by what they are: text, pair, id."""
        self.kept = {
            name: name if name in self._fields.names or name not in self.roles else self.roles[name][0] for name in keep
        }
        known = {name for names in self.roles.values() for name in names}
        if others := [self._fields.require("keep", name) for name in self.kept.values() if name not in known]:
            self.roles["keep"] = others

    def _find_texts(self) -> dict[str, list[str]]:
        """One text for classify unless a pair is asked for, two for pair, and for the others as many as there are."""
        columns = self._columns
        if self._task != "classify":
            lowered = {name.lower(): name for name in reversed(self._fields.names)}
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
            if self._task == "embed" and columns.label is None and not self._fields.guess(_SCORE):
                return []
            return self._find("label", columns.label, _SCORE, "the score")
        if columns.multi_label and columns.label and columns.label not in self._fields.names:
            return [self._fields.require("label", name) for name in columns.label.split(",")]
        return self._find("label", columns.label, _LABEL, "the label")

    def _find_choices(self) -> list[str]:
        given = self._columns.choices
        if given is not None and given not in self._fields.names:
            return [self._fields.require("choices", name) for name in given.split(",")]
        if given is None:
            numbered = [name for name in self._fields.names if _NUMBERED_CHOICE.fullmatch(name)]
            if len(numbered) >= 2:
                return sorted(numbered, key=lambda name: (len(name), name.lower()))
        names = (("choices", "endings", "options", "alternatives"),)
        return self._find("choices", given, names, "the choices")

    def _find(self, option: str, given: str | None, usual: Names, meaning: str) -> list[str]:
        return [self._fields.find(option, given, usual, meaning)]
