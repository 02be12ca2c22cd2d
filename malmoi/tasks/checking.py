"""A look at the files of a task before training on them: what is in them, and what about them is suspicious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from malmoi.errors import MalmoiError
from malmoi.tasks.columns import Columns, TaskName
from malmoi.tasks.examples import Choice, Classified, Example, Question, Scored, Tagged
from malmoi.tasks.lengths import LengthMeter, SequenceCost, choose_seq_len, cost_of
from malmoi.tasks.reading import ReadingNotes, read_examples
from malmoi.text.checking import Faults, Finding, Lengths, describe_lengths, say_count
from malmoi.text.sources import SourceReport

_BATCH = 1024
_UNBALANCED = 20
_LONGEST_KEPT = 5
# Lengths of sequences whose cost is shown.
_TRIED = (64, 128, 256, 512)
# Tasks whose long texts are read to their end.
_READ_IN_WINDOWS = ("tag", "answer")
# What people write where there is no label.
_NO_LABELS = frozenset({"-", "-1", "?", "n/a", "na", "nan", "none", "null", "unknown"})


@dataclass
class Part:
    """One side of the data: the examples to train on, or those to evaluate on."""

    files: list[SourceReport] = field(default_factory=list)
    examples: int = 0
    empty: int = 0
    skipped: int = 0
    repaired_answers: int = 0
    unanswerable: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # least, mean, greatest
    lengths: Lengths = field(default_factory=Lengths)
    costs: list[SequenceCost] = field(default_factory=list)  # of sequences of several lengths
    too_long: Finding = field(default_factory=Finding)
    duplicates: Finding = field(default_factory=Finding)
    contradictions: Finding = field(default_factory=Finding)


@dataclass
class TaskReport:
    """What `check_task` found out. A duplicate is any occurrence after the first; a contradiction has another label.

    `length_limit` is what the model takes, `seq_len` how long sequences will be if nobody says otherwise: None where
    there is no model to ask, or where long texts are read in windows, and nothing is cut.
    """

    task: TaskName
    length_unit: str
    length_limit: int | None
    seq_len: int | None = None
    train: Part = field(default_factory=Part)
    dev: Part | None = None
    overlap: Finding = field(default_factory=Finding)  # dev examples that are also trained on
    unseen_labels: Finding = field(default_factory=Finding)
    problems: list[str] = field(default_factory=list)
    verdict: str = ""


def check_task(
    task: TaskName,
    files: Sequence[str | Path],
    dev: Sequence[str | Path] = (),
    columns: Columns | None = None,
    meter: LengthMeter | None = None,
) -> TaskReport:
    """Go through all examples. What is at fault is noted in `problems`, and the rest is read all the same."""
    columns, meter = columns or Columns(), meter or LengthMeter()
    report = TaskReport(task, meter.unit, meter.limit)
    train = _Check(report.train, meter)
    report.problems += train.read(task, files, columns)
    if meter.unit == "tokens" and task not in _READ_IN_WINDOWS:
        report.seq_len = choose_seq_len(train.lengths, meter.limit)
        train.find_cut(report.seq_len)
    report.problems += _find_unlearnable(task, report.train, columns)
    if dev:
        report.dev = Part()

        def compare(example: Example, digest: bytes) -> None:
            if digest in train.targets:
                report.overlap.note(example.place, _content(example))
            for label in _labels(example):
                if label not in report.train.labels:
                    report.unseen_labels.note(example.place, label)

        held_out = _Check(report.dev, meter, compare)
        report.problems += held_out.read(task, dev, columns)
        if report.seq_len is not None:
            held_out.find_cut(report.seq_len)
        if report.unseen_labels.count and report.train.labels:
            first = report.unseen_labels.examples[0]
            known = ", ".join(sorted(report.train.labels))
            report.problems.append(
                f"{first.place}: the label {first.text!r} is not one of those trained on, {known}; "
                f"{say_count(report.unseen_labels.count, 'label')} like that"
            )
    report.verdict = judge(report)
    return report


class _Check:
    """The counts of one part, which grow while it is read."""

    def __init__(self, part: Part, meter: LengthMeter, compare: Callable[[Example, bytes], None] | None = None) -> None:
        self.targets: dict[bytes, str] = {}
        self.lengths: Counter[int] = Counter()
        self._part = part
        self._meter = meter
        self._compare = compare
        self._longest: list[tuple[int, str]] = []  # examples by their lengths, and where they stand
        self._labels: Counter[str] = Counter()
        self._scores: list[float] = []

    def read(self, task: TaskName, paths: Sequence[str | Path], columns: Columns) -> list[str]:
        """Count everything; return what could not be read."""
        faults, notes = Faults(), ReadingNotes()
        try:
            examples = read_examples(task, paths, columns, labelled=True, complain=faults.note, notes=notes)
            readable = _until_mistake(examples, faults)
            while batch := list(islice(readable, _BATCH)):
                self._add(batch, apart=task == "embed")
        except MalmoiError as mistake:
            faults.note(mistake)
        part = self._part
        part.files, part.empty, part.skipped = notes.files, notes.empty, notes.skipped
        part.repaired_answers = notes.repaired_answers
        part.labels = dict(sorted(self._labels.items(), key=lambda item: (-item[1], item[0])))
        if self._scores:
            mean = sum(self._scores) / len(self._scores)
            part.scores = {"least": min(self._scores), "mean": mean, "greatest": max(self._scores)}
        part.lengths.longest = max(self.lengths, default=0)
        describe_lengths(self.lengths, sum(length * count for length, count in self.lengths.items()), part.lengths)
        return faults.tell(", ".join(map(str, paths)))

    def find_cut(self, seq_len: int) -> None:
        """Note what sequences of this length cut off, and what others would."""
        if not self.lengths:
            return
        part, limit = self._part, self._meter.limit
        for length, place in self._longest:
            if length > seq_len:
                part.too_long.note(place, f"{length:,} {self._meter.unit}")
        part.too_long.count = cost_of(self.lengths, seq_len).cut
        tried = {length for length in (*_TRIED, seq_len, limit) if length and (not limit or length <= limit)}
        for length in sorted(tried):
            part.costs.append(cost_of(self.lengths, length))
            if not part.costs[-1].cut:
                break

    def _add(self, batch: list[Example], *, apart: bool) -> None:
        part = self._part
        lengths = self._meter.measure(batch, apart=apart)
        found = [*self._longest, *((length, one.place) for one, length in zip(batch, lengths, strict=True))]
        self._longest = sorted(found, key=lambda one: -one[0])[:_LONGEST_KEPT]
        for example, length in zip(batch, lengths, strict=True):
            part.examples += 1
            self.lengths[length] += 1
            self._labels.update(_labels(example))
            if isinstance(example, Scored) and example.score is not None:
                self._scores.append(example.score)
            part.unanswerable += isinstance(example, Question) and example.impossible
            content, target = _content(example), _target(example)
            digest = blake2b(content.encode(), digest_size=16).digest()
            known = self.targets.get(digest)
            if known is None:
                self.targets[digest] = target
            else:
                part.duplicates.note(example.place, content)
                if known != target:
                    part.contradictions.note(example.place, f"{target}, not {known}: {content}")
            if self._compare:
                self._compare(example, digest)


def _until_mistake(examples: Iterator[Example], faults: Faults) -> Iterator[Example]:
    """The examples before a mistake that makes the rest unreadable."""
    try:
        yield from examples
    except MalmoiError as mistake:
        faults.note(mistake)


def _labels(example: Example) -> tuple[str, ...]:
    if isinstance(example, Classified):
        return example.labels or ()
    if isinstance(example, Tagged):
        return example.tags or ()
    return (str(example.answer),) if isinstance(example, Choice) else ()


def _content(example: Example) -> str:
    """All that a model is shown, alike for texts that differ in white space only."""
    if isinstance(example, Tagged):
        parts: tuple[str | None, ...] = (example.lay_out()[0],)
    elif isinstance(example, Question):
        parts = (example.question, example.context)
    elif isinstance(example, Choice):
        parts = (example.prompt, *example.choices)
    else:
        parts = (example.text, example.pair)
    return " | ".join(" ".join(part.split()) for part in parts if part is not None)


def _target(example: Example) -> str:
    """What a model should say."""
    if isinstance(example, Classified):
        said: object = ", ".join(sorted(example.labels or ()))
    elif isinstance(example, Scored):
        said = example.score
    elif isinstance(example, Tagged):
        said = " ".join(example.tags or ())
    elif isinstance(example, Question):
        said = ", ".join(sorted({answer.text for answer in example.answers or ()})) or "(no answer)"
    else:
        said = example.answer
    return str(said)


def _find_unlearnable(task: TaskName, part: Part, columns: Columns) -> list[str]:
    if not part.examples:
        return []
    name = part.files[0].path
    if part.examples == 1:
        return [f"{name}: there is only one example; at least two are needed to learn from"]
    if task in ("classify", "pair", "tag") and len(part.labels) == 1 and not columns.multi_label:
        [label] = part.labels
        return [f"{name}: every example has the label {label!r}; at least two labels are needed"]
    if task == "regress" and part.scores and part.scores["least"] == part.scores["greatest"]:
        return [f"{name}: every example has the score {part.scores['least']}; there is nothing to learn"]
    return []


def judge(report: TaskReport) -> str:
    """One paragraph: ready to train on, or what to look at first."""
    remarks = []
    if report.problems:
        remarks.append(f"{say_count(len(report.problems), 'problem')} to be mended first")
    for part, name in ((report.train, ""), (report.dev, "dev: ")):
        if part is not None and part.examples:
            remarks += [name + remark for remark in _remarks(report, part)]
    if report.overlap.count and report.dev is not None:
        share = report.overlap.count / report.dev.examples
        remarks.append(f"{share:.1%} of the dev examples are also trained on: take them out of one of the two")
    size = say_count(report.train.examples, "example")
    if report.dev is not None:
        size += f", {report.dev.examples:,} to evaluate on"
    if not remarks:
        return f"Ready to train on: {size}, and nothing suspicious."
    ready = "Not ready to train on" if report.problems else "Can be trained on"
    return f"{ready} ({size}), but look at this: " + "; ".join(remarks) + "."


def _remarks(report: TaskReport, part: Part) -> Iterator[str]:
    if part.contradictions.count:
        yield f"{say_count(part.contradictions.count, 'example')} with the text of an earlier one but another label"
    if part.duplicates.count * 100 > part.examples:
        yield f"{part.duplicates.count / part.examples:.0%} of the examples repeat an earlier one: leave them out"
    if part.too_long.count:
        share = part.too_long.count / part.examples
        yield (
            f"{share:.1%} longer than sequences will be, {report.seq_len:,} {report.length_unit} (--seq-len): "
            "they will be cut"
        )
    if part.empty:
        yield f"{say_count(part.empty, 'example')} with an empty text"
    if part.repaired_answers:
        yield f"{say_count(part.repaired_answers, 'answer')} with a wrong offset, which was mended by search"
    if report.task in ("classify", "pair"):
        for label in part.labels:
            if label.lower() in _NO_LABELS:
                yield f"the label {label!r} looks like no label: leave it out with --skip-label={label}"
        counts = list(part.labels.values())
        if part is report.train and len(counts) > 1 and counts[0] > _UNBALANCED * counts[-1]:
            yield (
                f"{next(iter(part.labels))!r} is {counts[0] / counts[-1]:.0f} times as frequent as "
                f"{list(part.labels)[-1]!r}: look at macro F1, not at accuracy"
            )
