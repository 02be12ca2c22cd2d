"""A file → its texts, one a record: a line of plain text, a JSON line, a row of CSV, TSV or Parquet.

Unlike a corpus, nothing is left out: a text may be empty, and the n-th text stays the n-th.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malmoi.errors import MalmoiError
from malmoi.text.decoding import find_encoding
from malmoi.text.plaintext import cut_lines
from malmoi.text.reading import decode_chunks
from malmoi.text.records import choose_field, csv_rows, holds_text, tsv_rows
from malmoi.text.sources import FORMAT_OF_ENDING, Source, SourceReport, find_sources, read_bytes

_PARQUET_ROWS = 64

Identity = str | int


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text, the id that its record has (else its number, counted from 0), and where it stands."""

    text: str
    id: Identity
    place: str


class TextRows:
    """The texts of one file, as an iterable. `bytes_read` tells how far it is."""

    def __init__(
        self, path: str | Path, text_field: str | None = None, id_field: str | None = None, encoding: str = "auto"
    ) -> None:
        sources = find_sources([path])
        if Path(path).is_dir() or len(sources) != 1:
            raise MalmoiError(f"{path} is a folder; give one file.")
        self.source: Source = sources[0]
        self.total_bytes = self.source.size
        self.bytes_read = 0
        self.format = FORMAT_OF_ENDING.get(self.source.ending, "txt")
        self.fields = text_field, id_field
        self._encoding = find_encoding(encoding)
        if self.format == "txt" and (text_field or id_field):
            option = "--text" if text_field else "--id"
            raise MalmoiError(f"{option}: {self.source.name} is plain text, a text a line; it has no fields.")

    def __iter__(self) -> Iterator[TextRow]:
        self.bytes_read = 0
        report = SourceReport(self.source.name, self.format, size=self.source.size)
        chunks = read_bytes(self.source, report, self._count)
        if self.format == "parquet":
            rows = self._parquet(chunks, report.path)
        else:
            text = decode_chunks(chunks, report, self._encoding)
            if self.format == "txt":
                rows = ((line, None, number) for number, line in enumerate(cut_lines(text, report.path), 1))
            elif self.format == "jsonl":
                rows = self._json_lines(text, report.path)
            else:
                rows = self._table((csv_rows if self.format == "csv" else tsv_rows)(text, report.path), report.path)
        for number, (text_, id, line) in enumerate(rows):
            place = f"{report.path}, {'row' if self.format == 'parquet' else 'line'} {line}"
            yield TextRow(text_, number if self.fields[1] is None else _check_id(id, place), place)

    def _count(self, count: int) -> None:
        self.bytes_read += count

    def _json_lines(self, chunks: Iterator[str], name: str) -> Iterator[tuple[str, Any, int]]:
        wanted, id_field = self.fields
        for number, line in enumerate(cut_lines(chunks, name), 1):
            if not line or line.isspace():
                continue
            place = f"{name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as mistake:
                raise MalmoiError(f"{place}: this is not JSON ({mistake})") from None
            if not isinstance(record, dict):
                raise MalmoiError(f"{place}: a JSON object ({{…}}) is wanted here, one a line")
            if wanted is None or wanted not in record:
                texts = [name for name, value in record.items() if isinstance(value, str)]
                wanted = _choose(list(record), texts, wanted, place, "field")
            if not isinstance(record[wanted], str):
                raise MalmoiError(f"{place}: the field {wanted!r} does not hold text")
            if id_field is not None and id_field not in record:
                choose_field(list(record), [], id_field, place, "field")
            yield record[wanted], None if id_field is None else record[id_field], number

    def _table(self, rows: Iterator[tuple[int, list[str]]], name: str) -> Iterator[tuple[str, Any, int]]:
        wanted, id_field = self.fields
        columns: list[str] = []
        text_place, id_place = 0, None
        for line, row in rows:
            place = f"{name}, line {line}"
            if not columns:
                if row:
                    columns = row
                    text_place = columns.index(_choose(columns, columns, wanted, place, "column"))
                    if id_field is not None:
                        id_place = columns.index(choose_field(columns, [], id_field, place, "column"))
                continue
            if not row and len(columns) > 1:
                continue
            row = row or [""]
            if len(row) != len(columns):
                raise MalmoiError(f"{place}: {len(columns)} fields expected as in the header, {len(row)} found")
            yield row[text_place], None if id_place is None else row[id_place], line

    def _parquet(self, chunks: Iterator[bytes], name: str) -> Iterator[tuple[str, Any, int]]:
        import pyarrow
        import pyarrow.parquet

        with tempfile.TemporaryFile() as file:
            opened: Any = str(self.source.path)
            if self.source.size is None:  # it is read from its end, which a stream has not got
                file.writelines(chunks)
                file.seek(0)
                opened = file
            try:
                with pyarrow.parquet.ParquetFile(opened, pre_buffer=False) as table:
                    yield from self._parquet_rows(table, name)
            except (pyarrow.ArrowException, OSError) as mistake:
                reason = str(mistake).partition("\n")[0].rstrip(".")
                raise MalmoiError(f"{name}: this is not a Parquet file, or a damaged one ({reason})") from None

    def _parquet_rows(self, table: Any, name: str) -> Iterator[tuple[str, Any, int]]:
        schema = table.schema_arrow
        wanted, id_field = self.fields
        texts = [column.name for column in schema if holds_text(column.type)]
        wanted = _choose(schema.names, texts, wanted, name, "column")
        if wanted not in texts:
            raise MalmoiError(f"{name}: the column {wanted!r} holds {schema.field(wanted).type}, not text")
        columns = [wanted]
        if id_field is not None:
            columns.append(choose_field(schema.names, [], id_field, name, "column"))
        row = 0
        for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=list(dict.fromkeys(columns))):
            values = batch.column(wanted).to_pylist()
            ids = batch.column(id_field).to_pylist() if id_field is not None else [None] * len(values)
            for text, id in zip(values, ids, strict=True):
                row += 1
                yield text or "", id, row
            self.bytes_read = int((self.source.size or 0) * row / table.metadata.num_rows)


def _choose(names: list[str], texts: list[str], wanted: str | None, place: str, what: str) -> str:
    """As for a corpus; only the option is called --text here."""
    try:
        return choose_field(names, texts, wanted, place, what)
    except MalmoiError as mistake:
        raise MalmoiError(str(mistake).replace("--field", "--text")) from None


def _check_id(id: object, place: str) -> Identity:
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise MalmoiError(f"{place}: the id is {id!r}; it must be a text or a whole number.")
    return id
