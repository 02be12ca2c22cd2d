"""Files → documents: plain text, JSON lines, CSV/TSV and Parquet, also compressed, from files, folders or a pipe.

Everything is streamed: the memory taken does not grow with the corpus. Text is passed on as it is, except that lines
end in `\\n` and documents of only white space are left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.text.fields import TEXT_NAMES
from malmoi.text.files import Files, fields_of, read_records, refuse
from malmoi.text.json_records import name_kind
from malmoi.text.plaintext import read_plain_text
from malmoi.text.recognition import FileOptions
from malmoi.text.records import TEXT, Choose, Complain, Record, is_null, read_text
from malmoi.text.sources import Source, SourceReport
from malmoi.values import Document

__all__ = ["Corpus", "ReadOptions", "Source", "SourceReport"]

Format = Literal["auto", "txt", "jsonl", "csv", "tsv", "parquet"]
DocumentRule = Literal["auto", "file", "blank", "line", "wiki"]


@Parameter(name="*")
@dataclass(frozen=True)
class ReadOptions(FileOptions):
    """How files are to be read."""

    format: Annotated[Format, Parameter(help="What the files are; auto goes by endings and contents.")] = "auto"
    documents: Annotated[
        DocumentRule,
        Parameter(help="What a document is in plain text: a file, text between blank lines, a line, a wiki article."),
    ] = "auto"
    field: Annotated[
        str | None, Parameter(name=["--text", "--field"], help="The JSON field or the column that holds the text.")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unknown("format", self.format, get_args(Format))
        refuse_unknown("documents", self.documents, get_args(DocumentRule))


def refuse_unknown(option: str, value: str, known: Sequence[str]) -> None:
    """Refuse a value of an option that is none of those there are."""
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MalmoiError(f"--{option} {value}: choose one of {', '.join(known)}{hint}")


class Corpus(Files):
    """The documents of some files, as an iterable that can be gone through again (standard input only once)."""

    def __init__(self, paths: Sequence[str | Path], options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        super().__init__(paths, self.options.format, self.options)

    def __iter__(self) -> Iterator[Document]:
        self.rewind()
        for source in self.sources:
            yield from self.read(source)
        if not any(report.documents for report in self.reports):
            raise self.without_text()

    def read(self, source: Source, complain: Complain = refuse) -> Iterator[Document]:
        """The documents of one file.

        A record that is at fault (a broken JSON line, a ragged row) goes to `complain`; if that does not raise, the
        record is left out. What makes the rest of the file unreadable raises either way.
        """
        report = self.open(source)
        for document in self._documents(source, report, complain):
            if document.text and not document.text.isspace():
                report.documents += 1
                yield document
            else:
                report.empty += 1

    def _documents(self, source: Source, report: SourceReport, complain: Complain) -> Iterator[Document]:
        choose = choose_text(report, self.options.field)
        if report.format == "parquet":
            return _texts_of(self.parquet(source, report, choose, complain), report, complain)
        text = self.recognise(report, self.text(source, report), [self.options.field])
        if report.format == "txt":
            return read_plain_text(text, report, self.options.documents)
        return _texts_of(read_records(text, report, choose, complain), report, complain)


def choose_text(report: SourceReport, wanted: str | None) -> Choose:
    """Choose the field that holds the text: the one asked for, else a usual one, else the only one that holds text."""
    report.field = wanted

    def choose(kinds: Mapping[str, str], place: str) -> list[str]:
        texts = [name for name in kinds if kinds[name] == TEXT]
        fields = fields_of(report, list(kinds), place)
        if report.field is not None:
            fields.require("text", report.field)
        else:
            found = fields_of(report, texts, place).guess(TEXT_NAMES)
            if len(found) != 1:
                found = texts if len(texts) == 1 else [fields.find("text", None, TEXT_NAMES, "the text")]
            report.field = found[0]
        if report.format == "parquet" and report.field not in texts:
            raise MalmoiError(f"{place}: the column {report.field!r} should hold text but holds {kinds[report.field]}")
        return [report.field]

    return choose


def _texts_of(records: Iterable[Record], report: SourceReport, complain: Complain) -> Iterator[Document]:
    for line, [value] in records:
        text = read_text(value)
        if text is None:
            place = f"{report.path}, line {line}"
            complain(MalmoiError(f"{place}: the field {report.field!r} should hold text but holds {name_kind(value)}"))
            continue
        report.nulls += is_null(value)
        yield Document(text, report.path, line)
