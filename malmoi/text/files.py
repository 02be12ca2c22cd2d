"""Files opened one after the other: what they are, their text decoded, their records; and how far reading has come."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from malmoi.errors import MalmoiError
from malmoi.text.decoding import TextDecoder, find_encoding
from malmoi.text.fields import Fields
from malmoi.text.json_records import read_json
from malmoi.text.plaintext import look_ahead
from malmoi.text.recognition import FileOptions, recognise
from malmoi.text.records import Choose, Complain, Record, read_parquet, read_table
from malmoi.text.sources import FORMAT_OF_ENDING, Source, SourceReport, find_sources, read_bytes


class Files:
    """Some files to be read; `bytes_read` and `reports` tell how far it is and what was taken for each."""

    def __init__(
        self, paths: Sequence[str | Path], format: str = "auto", file_options: FileOptions | None = None
    ) -> None:
        self._format = format
        self.file_options = file_options or FileOptions()
        self._encoding = find_encoding(self.file_options.encoding)
        self.sources = find_sources(paths)
        sizes = [source.size for source in self.sources]
        self.total_bytes = None if None in sizes else sum(size for size in sizes if size)
        if self.total_bytes == 0:
            raise self.without_text()
        self.bytes_read = 0
        self.reports: list[SourceReport] = []

    def rewind(self) -> None:
        """Forget what has been read, to begin again."""
        self.bytes_read = 0
        self.reports = []

    def open(self, source: Source) -> SourceReport:
        """Begin a file: its report, with the format asked for or the one its ending promises."""
        format = FORMAT_OF_ENDING.get(source.ending, "txt") if self._format == "auto" else self._format
        report = SourceReport(source.name, format, size=source.size)
        self.reports.append(report)
        return report

    def text(self, source: Source, report: SourceReport, *, mend_lines: bool = True) -> Iterator[str]:
        """The text of a file, decompressed and decoded, a chunk at a time."""
        decoder = TextDecoder(report.path, self._encoding, mend_lines=mend_lines)
        try:
            for text in decoder.decode(read_bytes(source, report, self._count)):
                report.encoding = decoder.encoding
                yield text
        finally:
            report.encoding = decoder.encoding

    def recognise(
        self,
        report: SourceReport,
        text: Iterator[str],
        wanted: Sequence[str | None] = (),
        *,
        needs_table: bool = False,
    ) -> Iterator[str]:
        """Find out by the beginning of a text what it is, if it is not what its ending promises; all of it still.

        `wanted` are the fields that the user names.
        """
        head, text = look_ahead(text)
        given = [name for name in wanted if name is not None]
        is_told = self._format != "auto"
        recognise(head, report, self.file_options, is_told=is_told, wanted=given, needs_table=needs_table)
        return text

    def parquet(
        self, source: Source, report: SourceReport, choose: Choose, complain: Complain, *, mend_lines: bool = True
    ) -> Iterator[Record]:
        """The records of a Parquet file."""
        before = self.bytes_read
        chunks = read_bytes(source, report, self._count)
        first = next(chunks, b"")
        if not first:
            return
        if source.size is not None and report.compression is None:
            size = source.size
            self.bytes_read = before

            def show(share: float) -> None:
                self.bytes_read = before + int(size * share)

            yield from read_parquet(str(source.path), report, choose, complain, show, mend_lines=mend_lines)
            return
        # A Parquet file is read from its end, which a stream has not got: it goes to a temporary file first.
        with tempfile.TemporaryFile() as file:
            file.write(first)
            for chunk in chunks:
                file.write(chunk)
            file.seek(0)
            yield from read_parquet(file, report, choose, complain, lambda share: None, mend_lines=mend_lines)

    def _count(self, count: int) -> None:
        self.bytes_read += count

    def without_text(self) -> MalmoiError:
        """What to say when there was nothing in the files."""
        if len(self.sources) == 1:
            return MalmoiError(f"{self.sources[0].name}: there is no text in this file")
        return MalmoiError(f"{self.sources[0].name} and {len(self.sources) - 1} more: there is no text in these files")


def fields_of(report: SourceReport, names: Sequence[str], place: str) -> Fields:
    """The fields of a file that is being read."""
    return Fields(names, place, "field" if report.format == "jsonl" else "column", report.header)


def read_records(
    chunks: Iterator[str],
    report: SourceReport,
    choose: Choose,
    complain: Complain,
    *,
    mend: bool = True,
    mend_lines: bool = True,
) -> Iterator[Record]:
    """The records of a text in the report's format: jsonl, csv or tsv. Line ends within a text become `\\n`, unless
    places in it are to be those of the text as it was given."""
    if report.format == "jsonl":
        return read_json(chunks, report, choose, complain, mend=mend, mend_lines=mend_lines)
    return read_table(chunks, report, choose, complain)


def refuse(mistake: MalmoiError) -> None:
    """The way to complain that raises."""
    raise mistake
