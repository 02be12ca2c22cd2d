"""A look at a corpus before training on it, in one pass and constant memory: what is in it, and what is suspicious."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from malmoi.errors import MalmoiError
from malmoi.text.mojibake import find_mojibake
from malmoi.text.reading import Corpus, SourceReport
from malmoi.text.repetition import SeenTexts
from malmoi.text.scripts import ScriptCounter
from malmoi.text.sentences import Splitter
from malmoi.values import Document

LONG_LINE_CHARACTERS = 10_000
_EXAMPLES = 5
_EXAMPLE_CHARACTERS = 60
_PROBLEMS_SHOWN_EACH_FILE = 20
# Lengths from here on are counted as one; the longest is kept apart.
_LENGTH_LIMIT = 100_000
_LENGTH_BOUNDS = (10, 20, 50, 100, 200, 500, 1000)


@dataclass
class Example:
    """Where something was found, and how it reads."""

    place: str
    text: str


@dataclass
class Finding:
    """How often something was found, and the first few of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def note(self, place: str, text: str) -> None:
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            shown = " ".join(text[: 2 * _EXAMPLE_CHARACTERS].split())
            shown = shown if len(shown) <= _EXAMPLE_CHARACTERS else shown[:_EXAMPLE_CHARACTERS] + "…"
            self.examples.append(Example(place, shown))


@dataclass
class Lengths:
    """How long things are: sentences in characters, or examples in tokens."""

    mean: float = 0.0
    median: int = 0
    percentile_95: int = 0
    percentile_99: int = 0
    longest: int = 0
    histogram: dict[str, int] = field(default_factory=dict)


@dataclass
class CorpusReport:
    """What `check_corpus` found out. A duplicate is any occurrence after the first."""

    files: list[SourceReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    documents: int = 0
    empty: int = 0
    sentences: int = 0
    words: int = 0
    characters: int = 0
    scripts: dict[str, int] = field(default_factory=dict)
    not_nfc: Finding = field(default_factory=Finding)
    duplicate_documents: Finding = field(default_factory=Finding)
    duplicate_sentences: Finding = field(default_factory=Finding)
    duplicate_error_rate: float = 0.0
    long_lines: Finding = field(default_factory=Finding)
    longest_line: int = 0
    sentence_lengths: Lengths = field(default_factory=Lengths)
    mojibake: dict[str, Finding] = field(default_factory=dict)
    verdict: str = ""


def check_corpus(corpus: Corpus, splitter: Splitter, show: Callable[[int], None] | None = None) -> CorpusReport:
    """Go through the whole corpus. What cannot be read is noted in `problems`, and the rest is read all the same.

    `show` is told the number of bytes read so far, for a progress bar.
    """
    corpus.rewind()
    check = _Check(splitter)
    for source in corpus.sources:
        faults = Faults()
        shown_bytes = -1
        try:
            for document in corpus.read(source, faults.note):
                check.add(document, is_plain_text=corpus.reports[-1].rule is not None)
                if show and corpus.bytes_read != shown_bytes:
                    shown_bytes = corpus.bytes_read
                    show(shown_bytes)
        except MalmoiError as mistake:
            faults.note(mistake)
        check.report.problems += faults.tell(source.name)
    report = check.finish(corpus.reports)
    if not report.documents and not report.problems:
        report.problems.append(str(corpus.without_text()))
    report.verdict = judge(report)
    return report


class Faults:
    """What is wrong in a file: all of it counted, the first few kept."""

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def note(self, mistake: MalmoiError) -> None:
        self.count += 1
        if len(self.sentences) < _PROBLEMS_SHOWN_EACH_FILE:
            self.sentences.append(str(mistake))

    def tell(self, name: str) -> list[str]:
        """What was noted, with a last sentence for what was not kept."""
        more = self.count - len(self.sentences)
        return self.sentences + ([f"{name}: {say_count(more, 'more problem')} like these"] if more else [])


class _Check:
    """The counts that grow while a corpus is read."""

    def __init__(self, splitter: Splitter) -> None:
        self.report = CorpusReport()
        self._splitter = splitter
        self._scripts = ScriptCounter()
        self._documents = SeenTexts()
        self._sentences = SeenTexts()
        self._lengths: Counter[int] = Counter()
        self._length_sum = 0

    def add(self, document: Document, is_plain_text: bool) -> None:
        report, text = self.report, document.text
        place = f"{document.source}, line {document.line}"
        report.documents += 1
        report.characters += len(text)
        report.words += len(text.split())
        self._scripts.add(text)
        if self._documents.add(text):
            report.duplicate_documents.note(place, text)
        if not unicodedata.is_normalized("NFC", text):
            report.not_nfc.note(place, text)
        for kind, excerpt in find_mojibake(text).items():
            report.mojibake.setdefault(kind, Finding()).note(place, excerpt)
        if len(text) > LONG_LINE_CHARACTERS:
            self._look_for_long_lines(document, is_plain_text)
        sentences = self._splitter(text)
        report.sentences += len(sentences)
        for sentence in sentences:
            if self._sentences.add(sentence):
                report.duplicate_sentences.note(place, sentence)
        self._lengths.update([min(len(sentence), _LENGTH_LIMIT) for sentence in sentences])
        lengths = [len(sentence) for sentence in sentences]
        self._length_sum += sum(lengths)
        report.sentence_lengths.longest = max(report.sentence_lengths.longest, *lengths, 0)

    def _look_for_long_lines(self, document: Document, is_plain_text: bool) -> None:
        for number, line in enumerate(document.text.split("\n")):
            if len(line) > LONG_LINE_CHARACTERS:
                # In a record the line ends are those of the text, not of the file.
                place = document.line + number if is_plain_text else document.line
                self.report.long_lines.note(f"{document.source}, line {place}", f"{len(line):,} characters")
                self.report.longest_line = max(self.report.longest_line, len(line))

    def finish(self, files: list[SourceReport]) -> CorpusReport:
        report = self.report
        report.files = files
        report.empty = sum(file.empty for file in files)
        report.scripts = self._scripts.counts()
        report.duplicate_error_rate = self._sentences.error_rate
        describe_lengths(self._lengths, self._length_sum, report.sentence_lengths)
        return report


def describe_lengths(counts: Counter[int], length_sum: int, lengths: Lengths) -> None:
    """Fill in the figures from how often each length occurs."""
    if not counts:
        return
    total = counts.total()
    lengths.mean = round(length_sum / total, 1)
    seen, ordered = 0, sorted(counts.items())
    for length, count in ordered:
        before, seen = seen, seen + count
        # The smallest length that at least the share of the sentences does not exceed.
        if before < 0.5 * total <= seen:
            lengths.median = length
        if before < 0.95 * total <= seen:
            lengths.percentile_95 = length
        if before < 0.99 * total <= seen:
            lengths.percentile_99 = length
    lower = 1
    for upper in (*_LENGTH_BOUNDS, None):
        name = f"{lower}–{upper}" if upper else f"{lower} or more"
        lengths.histogram[name] = sum(
            count for length, count in ordered if length >= lower and (upper is None or length <= upper)
        )
        lower = (upper or 0) + 1


def judge(report: CorpusReport) -> str:
    """One paragraph: ready to train on, or what to look at first."""
    remarks = []
    if report.problems:
        remarks.append(f"{say_count(len(report.problems), 'problem')} in reading to be mended first")
    if nulls := sum(file.nulls for file in report.files):
        remarks.append(f"{say_count(nulls, 'null')} instead of a text, left out like empty ones")
    for kind, finding in report.mojibake.items():
        remarks.append(f"{say_count(finding.count, 'document')} with {kind}: decode the source again")
    if report.not_nfc.count:
        remarks.append(
            f"{say_count(report.not_nfc.count, 'document')} not in Unicode's composed form (NFC), "
            "like names from macOS: malmoi's own tokenizers compose them, others may not"
        )
    if report.duplicate_documents.count * 100 > report.documents:
        share = report.duplicate_documents.count / report.documents
        remarks.append(f"{share:.0%} of the documents repeat an earlier one: leave them out")
    if report.duplicate_sentences.count * 10 > report.sentences:
        share = report.duplicate_sentences.count / report.sentences
        remarks.append(f"{share:.0%} of the sentences repeat an earlier one: look for boilerplate")
    if report.long_lines.count:
        remarks.append(
            f"{say_count(report.long_lines.count, 'line')} longer than {LONG_LINE_CHARACTERS:,} characters: is it text?"
        )
    if odd := report.scripts.get("control", 0) + report.scripts.get("private use", 0):
        remarks.append(f"{say_count(odd, 'control or private-use character')}, which mean nothing to a model")
    size = f"{say_count(report.documents, 'document')}, {say_count(report.words, 'word')}"
    if not remarks:
        return f"Ready to train on: {size}, and nothing suspicious."
    ready = "Not ready to train on" if report.problems or not report.documents else "Can be trained on"
    return f"{ready} ({size}), but look at this: " + "; ".join(remarks) + "."


def say_count(count: int, noun: str) -> str:
    """The number with its noun: 1 line, 2 lines."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
