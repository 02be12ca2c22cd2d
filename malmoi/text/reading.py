"""Files → documents: plain text, JSON lines, CSV/TSV and Parquet, also compressed, from files, folders or a pipe.

Everything is streamed: the memory taken does not grow with the corpus. Text is passed on as it is, except that lines
end in `\\n` and documents of only white space are left out.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.text.decoding import TextDecoder, find_encoding
from malmoi.text.plaintext import read_plain_text
from malmoi.text.records import Complain, read_csv, read_json_lines, read_parquet, read_tsv
from malmoi.text.sources import FORMAT_OF_ENDING, Source, SourceReport, find_sources, read_bytes
from malmoi.values import Document

__all__ = ["Corpus", "ReadOptions", "Source", "SourceReport"]

Format = Literal["auto", "txt", "jsonl", "csv", "tsv", "parquet"]
DocumentRule = Literal["auto", "file", "blank", "line", "wiki"]

_READERS = {"jsonl": read_json_lines, "csv": read_csv, "tsv": read_tsv}


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


class Corpus:
    """The documents of some files, as an iterable that can be gone through again (standard input only once).

    While it is being read, `bytes_read` and `reports` tell how far it is and what was taken for each file.
    """

    def __init__(self, paths: Sequence[str | Path], options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        self._encoding = find_encoding(self.options.encoding)
        self.sources = find_sources(paths)
        sizes = [source.size for source in self.sources]
        self.total_bytes = None if None in sizes else sum(size for size in sizes if size)
        if self.total_bytes == 0:
            raise self.without_text()
        self.bytes_read = 0
        self.reports: list[SourceReport] = []
        self._standard_input_is_used = False

    def __iter__(self) -> Iterator[Document]:
        self.rewind()
        for source in self.sources:
            yield from self.read(source)
        if not any(report.documents for report in self.reports):
            raise self.without_text()

    def rewind(self) -> None:
        """Forget what has been read, to begin again."""
        self.bytes_read = 0
        self.reports = []

    def read(self, source: Source, complain: Complain | None = None) -> Iterator[Document]:
        """The documents of one file.

        With `complain`, a record that is at fault (a broken JSON line, a ragged row) is handed to it and left out;
        without, it raises. What makes the rest of the file unreadable raises either way.
        """
        report = SourceReport(source.name, self._format(source), size=source.size)
        self.reports.append(report)
        for document in self._documents(source, report, complain or _raise):
            if document.text and not document.text.isspace():
                report.documents += 1
                yield document
            else:
                report.empty += 1

    def _format(self, source: Source) -> str:
        if self.options.format != "auto":
            return self.options.format
        return FORMAT_OF_ENDING.get(source.ending, "txt")

    def _documents(self, source: Source, report: SourceReport, complain: Complain) -> Iterator[Document]:
        if source.is_standard_input:
            if self._standard_input_is_used:
                raise MalmoiError("standard input can be read only once; put the text in a file first")
            self._standard_input_is_used = True
        chunks = read_bytes(source, report, self._count)
        if report.format == "parquet":
            yield from self._parquet(source, chunks, report, complain)
            return
        text = decode_chunks(chunks, report, self._encoding)
        if report.format == "txt":
            yield from read_plain_text(text, report, self.options.documents)
        else:
            yield from _READERS[report.format](text, report, self.options.field, complain)

    def _parquet(
        self, source: Source, chunks: Iterator[bytes], report: SourceReport, complain: Complain
    ) -> Iterator[Document]:
        before = self.bytes_read
        first = next(chunks, b"")
        if not first:
            return
        if source.size is not None and report.compression is None:
            size = source.size
            self.bytes_read = before

            def show(share: float) -> None:
                self.bytes_read = before + int(size * share)

            yield from read_parquet(str(source.path), report, self.options.field, complain, show)
            return
        # A Parquet file is read from its end, which a stream has not got: it goes to a temporary file first.
        with tempfile.TemporaryFile() as file:
            file.write(first)
            for chunk in chunks:
                file.write(chunk)
            file.seek(0)
            yield from read_parquet(file, report, self.options.field, complain, lambda share: None)

    def _count(self, count: int) -> None:
        self.bytes_read += count

    def without_text(self) -> MalmoiError:
        """What to say when there was not a single document."""
        if len(self.sources) == 1:
            return MalmoiError(f"{self.sources[0].name}: there is no text in this file")
        return MalmoiError(f"{self.sources[0].name} and {len(self.sources) - 1} more: there is no text in these files")


def _raise(mistake: MalmoiError) -> None:
    raise mistake


def decode_chunks(chunks: Iterator[bytes], report: SourceReport, encoding: str) -> Iterator[str]:
    """The text of a file's bytes; the report is told the encoding."""
    decoder = TextDecoder(report.path, encoding)
    try:
        for text in decoder.decode(chunks):
            report.encoding = decoder.encoding
            yield text
    finally:
        report.encoding = decoder.encoding
