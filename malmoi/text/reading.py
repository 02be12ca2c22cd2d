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
from malmoi.text.files import Files, read_records, refuse
from malmoi.text.json_records import name_kind
from malmoi.text.plaintext import read_plain_text
from malmoi.text.records import TEXT, Choose, Complain, Record, list_names, require_field
from malmoi.text.sources import Source, SourceReport
from malmoi.values import Document

__all__ = ["Corpus", "ReadOptions", "Source", "SourceReport"]

Format = Literal["auto", "txt", "jsonl", "csv", "tsv", "parquet"]
DocumentRule = Literal["auto", "file", "blank", "line", "wiki"]

# Where a text is usually found, in the order of preference.
_USUAL_FIELDS = ("text", "content", "document", "sentence")


@Parameter(name="*")
@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read."""

    format: Annotated[Format, Parameter(help="What the files are; auto goes by their endings.")] = "auto"
    documents: Annotated[
        DocumentRule,
        Parameter(help="What a document is in plain text: a file, text between blank lines, a line, a wiki article."),
    ] = "auto"
    field: Annotated[str | None, Parameter(help="The JSON field or the column that holds the text.")] = None
    encoding: Annotated[str, Parameter(help="auto, or a name such as utf-8, cp949, utf-16.")] = "auto"

    def __post_init__(self) -> None:
        _refuse_unknown("format", self.format, get_args(Format))
        _refuse_unknown("documents", self.documents, get_args(DocumentRule))


def _refuse_unknown(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MalmoiError(f"--{option} {value}: choose one of {', '.join(known)}{hint}")


class Corpus(Files):
    """The documents of some files, as an iterable that can be gone through again (standard input only once)."""

    def __init__(self, paths: Sequence[str | Path], options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        super().__init__(paths, self.options.format, self.options.encoding)

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
        text = self.text(source, report)
        if report.format == "txt":
            return read_plain_text(text, report, self.options.documents)
        return _texts_of(read_records(text, report, choose, complain), report, complain)


def choose_text(report: SourceReport, wanted: str | None, option: str = "--field") -> Choose:
    """Choose the field that holds the text: the one asked for, else a usual one, else the only one that holds text.

    `option` is what the user calls it by.
    """
    report.field = wanted
    what = "field" if report.format == "jsonl" else "column"

    def choose(kinds: Mapping[str, str], place: str) -> list[str]:
        names = list(kinds)
        texts = [name for name in names if kinds[name] == TEXT]
        if report.field is not None:
            require_field(report.field, names, place, what)
        else:
            usual = [name for name in _USUAL_FIELDS if name in texts]
            if not usual and len(texts) != 1:
                raise MalmoiError(
                    f"{place}: which {what} holds the text? Give {option} with one of {list_names(names)}"
                )
            report.field = (usual or texts)[0]
        if report.format == "parquet" and report.field not in texts:
            raise MalmoiError(f"{place}: the column {report.field!r} should hold text but holds {kinds[report.field]}")
        return [report.field]

    return choose


def _texts_of(records: Iterable[Record], report: SourceReport, complain: Complain) -> Iterator[Document]:
    for line, [text] in records:
        # An empty cell of a Parquet file is a null.
        if text is None and report.format == "parquet":
            text = ""
        if isinstance(text, str):
            yield Document(text, report.path, line)
        else:
            place = f"{report.path}, line {line}"
            complain(MalmoiError(f"{place}: the field {report.field!r} should hold text but holds {name_kind(text)}"))
