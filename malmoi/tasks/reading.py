"""Files → examples of a task, as a stream: tables and JSON with named columns, words and tags a line, SQuAD's JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from malmoi.errors import MalmoiError
from malmoi.tasks.answers import repair_answers
from malmoi.tasks.columns import TASK_NAMES, ColumnChoice, Columns, TaskName
from malmoi.tasks.conll import looks_like_conll, read_conll
from malmoi.tasks.examples import Asked, Classified, Example, Question, Scored, Tagged, Untagged
from malmoi.tasks.notes import ReadingNotes
from malmoi.tasks.rows import EmptyText, Row, make_example, spell_label
from malmoi.tasks.squad import read_squad
from malmoi.text.fields import list_names
from malmoi.text.files import Files, read_records, refuse
from malmoi.text.plaintext import cut_lines, look_ahead
from malmoi.text.records import Complain, Record
from malmoi.text.sources import SourceReport

__all__ = [
    "TASK_NAMES",
    "Columns",
    "ReadingNotes",
    "TaskName",
    "find_labels",
    "read_examples",
    "require_known_labels",
    "require_trainable",
]


def read_examples(
    task: TaskName,
    paths: Sequence[str | Path],
    columns: Columns | None = None,
    *,
    labelled: bool,
    complain: Complain = refuse,
    notes: ReadingNotes | None = None,
) -> Iterator[Example]:
    """The examples of some files, one after the other. Without `labelled`, labels are not even looked for.

    An example that is at fault goes to `complain`; if that does not raise, the example is left out. Answers come out
    with the offset they really have. No examples at all are a mistake.
    """
    columns = columns or Columns()
    notes = notes or ReadingNotes()
    files = Files(paths, columns.format, columns)
    notes.files, notes.source = files.reports, files
    rows = _Reader(task, files, columns, labelled, complain, notes).read()
    return (cast(Example, row.example) for row in rows if row.example is not None)


def read_rows(
    task: TaskName,
    paths: Sequence[str | Path],
    columns: Columns,
    keep: Sequence[str] = (),
    *,
    notes: ReadingNotes | None = None,
) -> Iterator[Asked]:
    """The rows of some files that are to be answered, one after the other; none is left out, also those without text.

    Labels are not looked for. `keep` names columns that are kept, or what they are: text, pair.
    """
    notes = notes or ReadingNotes()
    files = Files(paths, columns.format, columns)
    notes.files, notes.source = files.reports, files
    return _Reader(task, files, columns, False, refuse, notes, keep).read()


class _Reader:
    def __init__(
        self,
        task: TaskName,
        files: Files,
        columns: Columns,
        labelled: bool,
        complain: Complain,
        notes: ReadingNotes,
        keep: Sequence[str] = (),
    ) -> None:
        self._task = task
        self._files = files
        self._columns = columns
        self._labelled = labelled
        self._complain_aloud = complain
        self._notes = notes
        self._keep = keep
        self._rows = 0
        self._faults = 0
        self._skip_label = spell_label(columns.skip_label)

    def read(self) -> Iterator[Asked]:
        for source in self._files.sources:
            report = self._files.open(source)
            choice = ColumnChoice(self._task, self._columns, self._labelled, report, self._keep)
            if report.format == "parquet":
                records = self._files.parquet(source, report, choice, self._complain, mend_lines=False)
                rows = self._from_records(records, report, choice)
            else:
                # Offsets are those of the text as it was given, line ends and all; within fields only CSV has them.
                text = self._files.text(source, report, mend_lines=report.format != "csv")
                rows = self._from_text(text, report, choice)
            for row in rows:
                if row.example is None or (example := self._finish(row.example)) is not None:
                    report.documents += 1
                    self._rows += 1
                    yield row if row.example is None else replace(row, example=example)
        if not self._faults and not any(report.documents for report in self._files.reports):
            names = list_names([source.name for source in self._files.sources])
            raise MalmoiError(f"{names}: there are no examples in this file; a header alone is none")

    def _from_text(self, chunks: Iterator[str], report: SourceReport, choice: ColumnChoice) -> Iterator[Asked]:
        if self._columns.format == "auto":
            head, chunks = look_ahead(chunks)
            report.format = _recognise(self._task, report.format, head, self._labelled)
        columns = self._columns
        wanted = [columns.text, columns.pair, columns.label]
        chunks = self._files.recognise(report, chunks, wanted, needs_table=True)
        if report.format == "conll":
            _require_task(self._task, "tag", report)
            return map(self._ask, read_conll(chunks, report, self._columns, self._labelled, self._complain))
        if report.format == "squad":
            _require_task(self._task, "answer", report)
            return map(self._ask, read_squad(chunks, report, self._labelled, self._complain))
        if report.format in ("lines", "txt"):
            report.format = "lines"
            return self._from_lines(chunks, report)
        records = read_records(chunks, report, choice, self._complain, mend_lines=False)
        return self._from_records(records, report, choice)

    def _from_records(self, records: Iterator[Record], report: SourceReport, choice: ColumnChoice) -> Iterator[Asked]:
        unit = "row" if report.format == "parquet" else "line"
        for line, values in records:
            row = Row(f"{report.path}, {unit} {line}", choice.what, choice.roles, values, report.value_names)
            report.field = ", ".join(name for names in choice.roles.values() for name in names)
            example: Example | Untagged | None = None
            try:
                example = make_example(self._task, row, self._columns, self._labelled)
            except MalmoiError as mistake:
                if not self._leave_unanswered(mistake):
                    self._complain(mistake)
                    continue
            id = row.value("id") if row.has("id") else None
            kept = {name: row.find(column) for name, column in choice.kept.items()}
            yield Asked(id if isinstance(id, str | int) and id != "" else self._rows, example, kept)

    def _from_lines(self, chunks: Iterator[str], report: SourceReport) -> Iterator[Asked]:
        """A text a line, which is all that a prediction from one text needs."""
        if self._labelled or self._task in ("pair", "answer", "choose"):
            raise MalmoiError(
                f"{report.path}: there are no columns in this text, and {self._task} needs them; "
                "give --format csv, tsv or jsonl if it has some"
            )
        for number, line in enumerate(cut_lines(chunks, report.path), 1):
            place = f"{report.path}, line {number}"
            example: Example | Untagged | None = None
            if not line.strip():
                mistake = EmptyText(f"{place}: the line is empty; leave such lines out with --skip-empty")
                if not self._leave_unanswered(mistake):
                    self._complain(mistake)
                    continue
            elif self._task == "tag":
                example = Untagged(line, place)
            elif self._task == "classify":
                example = Classified(line, None, None, place)
            else:
                example = Scored(line, None, None, place)
            yield Asked(self._rows, example, pick_kept({"text": line}, self._keep, report.path))

    def _ask(self, example: Tagged | Question) -> Asked:
        """The row of a form that has no columns."""
        if isinstance(example, Tagged):
            return Asked(self._rows, example, pick_kept({"text": example.lay_out()[0]}, self._keep, "--keep"))
        kept = pick_kept({"text": example.question, "pair": example.context}, self._keep, "--keep")
        is_empty = not (example.question.strip() and example.context.strip())
        if is_empty:  # with answers the reader has complained
            self._leave_unanswered(EmptyText(example.place))
        return Asked(example.id, None if is_empty else example, kept)

    def _leave_unanswered(self, mistake: MalmoiError) -> bool:
        """Whether the mistake is a lack of text in a row that is to be answered: its answer is then none at all."""
        if self._labelled or not isinstance(mistake, EmptyText):
            return False
        self._notes.empty += 1
        self._files.reports[-1].empty += 1
        return True

    def _finish(self, example: Example | Untagged) -> Example | Untagged | None:
        if isinstance(example, Classified) and example.labels == (self._skip_label,):
            self._notes.skipped += 1
            return None
        if isinstance(example, Question):
            try:
                example, repaired = repair_answers(example)
            except MalmoiError as mistake:
                self._complain(mistake)
                return None
            self._notes.repaired_answers += repaired
        return example

    def _complain(self, mistake: MalmoiError) -> None:
        if isinstance(mistake, EmptyText):
            self._notes.empty += 1
            self._files.reports[-1].empty += 1
            if self._columns.skip_empty:
                return
        self._faults += 1
        self._complain_aloud(mistake)


def _recognise(task: TaskName, format: str, head: str, labelled: bool) -> str:
    """What a text is where a task has forms of its own, by the format its ending promises and the way it begins."""
    first = head.strip("\n").partition("\n")[0]
    if task == "answer" and format == "jsonl":
        return "jsonl" if first.lstrip().startswith("[") or _is_record(first) else "squad"
    if task == "tag" and format in ("txt", "tsv"):
        return "conll" if labelled or looks_like_conll(head) else "lines"
    return format


def pick_kept(values: Mapping[str, str], keep: Sequence[str], place: str) -> dict[str, str]:
    """What is to be kept of a row without columns, of which only some things have a name; its id always is."""
    for name in keep:
        if name not in values and name != "id":
            raise MalmoiError(f"{place}: there is no column {name!r} to keep, only {', '.join(values)} and id")
    return {name: values[name] for name in keep if name in values}


def _is_record(line: str) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "data" not in record


def _require_task(task: TaskName, wanted: TaskName, report: SourceReport) -> None:
    if task != wanted:
        raise MalmoiError(f"{report.path}: --format {report.format} is for the task {wanted}, not for {task}")


def find_labels(examples: Iterable[Example]) -> list[str]:
    """The labels or tags that occur, sorted; whole numbers by their value. One label alone cannot be learnt."""
    found: set[str] = set()
    place = None
    may_be_several = False
    for example in examples:
        labels = _labels_of(example)
        found.update(labels)
        place = place or example.place
        may_be_several = may_be_several or (isinstance(example, Classified) and len(labels) != 1)
    if len(found) < 2 and not (found and may_be_several):
        said = f"every example has the label {next(iter(found))!r}" if found else "no example has a label"
        raise MalmoiError(f"{place or 'no file'}: {said}; at least two labels are needed to learn to tell them apart")
    if all(label.removeprefix("-").isdecimal() for label in found):
        return sorted(found, key=lambda label: (int(label), label))
    return sorted(found)


def require_known_labels(examples: Iterable[Example], labels: Sequence[str]) -> None:
    """Refuse an example whose label is not one of those that were trained on."""
    known = set(labels)
    for example in examples:
        for label in _labels_of(example):
            if label not in known:
                near = difflib.get_close_matches(label, labels, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "mend it, or train on examples of it"
                raise MalmoiError(
                    f"{example.place}: the label {label!r} is not one of those trained on, {list_names(labels)}; {hint}"
                )


def _labels_of(example: Example) -> tuple[str, ...]:
    labels = None
    if isinstance(example, Classified):
        labels = example.labels
    elif isinstance(example, Tagged):
        labels = example.tags
    return labels or ()


def require_trainable(examples: Sequence[Example]) -> None:
    """Refuse examples from which nothing can be learnt: a single one, one label only, or one and the same score."""
    if len(examples) < 2:
        place = examples[0].place if examples else "no file"
        raise MalmoiError(f"{place}: this is the only example; at least two are needed to learn from")
    if isinstance(examples[0], Classified | Tagged):
        find_labels(examples)
    scores = {example.score for example in examples if isinstance(example, Scored)}
    if len(scores) == 1 and None not in scores:
        raise MalmoiError(f"{examples[0].place}: every example has the score {scores.pop()}; there is nothing to learn")
