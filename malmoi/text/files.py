"""Files opened one after the other: what they are, their text decoded, their records; and how far reading has come."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from malmoi.errors import MalmoiError
from malmoi.text.decoding import TextDecoder, find_encoding
from malmoi.text.json_records import read_json
from malmoi.text.records import Choose, Complain, Record, read_csv, read_parquet, read_tsv
from malmoi.text.sources import FORMAT_OF_ENDING, Source, SourceReport, find_sources, read_bytes


class Files:
    """Some files to be read; `bytes_read` and `reports` tell how far it is and what was taken for each."""

    def __init__(self, paths: Sequence[str | Path], format: str = "auto", encoding: str = "auto") -> None:
        self._format = format
        self._encoding = find_encoding(encoding)
        self.sources = find_sources(paths)
        sizes = [source.size for source in self.sources]
        self.total_bytes = None if None in sizes else sum(size for size in sizes if size)
        if self.total_bytes == 0:
            raise self.without_text()
        self.bytes_read = 0
        self.reports: list[SourceReport] = []
        self._standard_input_is_used = False

    def rewind(self) -> None:
        """Forget what has been read, to begin again."""
        self.bytes_read = 0
        self.reports = []

    def open(self, source: Source) -> SourceReport:
        """Begin a file: its report, with the format asked for or the one its ending promises."""
        if source.is_standard_input:
            if self._standard_input_is_used:
                raise MalmoiError("standard input can be read only once; put the text in a file first")
            self._standard_input_is_used = True
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


def read_records(
    chunks: Iterator[str],
    report: SourceReport,
    choose: Choose,
    complain: Complain,
    *,
    header: bool = True,
    mend: bool = True,
    mend_lines: bool = True,
) -> Iterator[Record]:
    """The records of a text in the report's format: jsonl, csv or tsv. Line ends within a text become `\\n`, unless
    places in it are to be those of the text as it was given."""
    if report.format == "jsonl":
        return read_json(chunks, report, choose, complain, mend=mend, mend_lines=mend_lines)
    reader = read_csv if report.format == "csv" else read_tsv
    return reader(chunks, report, choose, complain, header=header)


def refuse(mistake: MalmoiError) -> None:
    """The way to complain that raises."""
    raise mistake
