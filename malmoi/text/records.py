"""Records → documents: JSON lines, CSV, TSV and Parquet, of which one field holds the text.

A record that is at fault goes to `complain`, which either raises or notes it; reading then goes on with the next.
"""

from __future__ import annotations

import csv
import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

from malmoi.errors import MalmoiError
from malmoi.text.plaintext import LONGEST_CHARACTERS, cut_lines
from malmoi.text.sources import SourceReport
from malmoi.values import Document

Complain = Callable[[MalmoiError], None]

# Where a text is usually found, in the order of preference.
_USUAL_FIELDS = ("text", "content", "document", "sentence")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Rows that are decoded at a time: few, because a row may hold a whole book.
_PARQUET_ROWS = 64


def choose_field(names: Sequence[str], text_names: Sequence[str], wanted: str | None, place: str, what: str) -> str:
    """The field that holds the text: the one asked for, else a usual one, else the only one that holds text."""
    if wanted is not None:
        if wanted in names:
            return wanted
        near = difflib.get_close_matches(wanted, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MalmoiError(f"{place}: there is no {what} {wanted!r} among {_listed(names)}{hint}")
    for usual in _USUAL_FIELDS:
        if usual in text_names:
            return usual
    if len(text_names) == 1:
        return text_names[0]
    raise MalmoiError(f"{place}: which {what} holds the text? Give --field with one of {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:20]) if names else "(none)"
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def read_json_lines(
    chunks: Iterator[str], report: SourceReport, field: str | None, complain: Complain
) -> Iterator[Document]:
    """One JSON object a line."""
    first = next((chunk for chunk in chunks if chunk), "")
    if first.lstrip().startswith("["):
        raise MalmoiError(
            f"{report.path}: this is one JSON array, but one object a line is wanted; "
            "turn it into lines with: jq -c '.[]' FILE.json > FILE.jsonl"
        )
    report.field = field
    for number, line in enumerate(cut_lines(chain([first], chunks), report.path), 1):
        if not line or line.isspace():
            continue
        try:
            text = _text_of_json(line, report, f"{report.path}, line {number}")
        except MalmoiError as mistake:
            complain(mistake)
            continue
        yield Document(text, report.path, number)


def _text_of_json(line: str, report: SourceReport, place: str) -> str:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as mistake:
        raise MalmoiError(f"{place}: this is not JSON ({mistake.msg}, column {mistake.colno})") from None
    except (ValueError, RecursionError):
        raise MalmoiError(f"{place}: nested too deep or with too long a number to be read") from None
    if not isinstance(record, dict):
        raise MalmoiError(f"{place}: a JSON object ({{…}}) is wanted here, not {_kind(record)}")
    if report.field is None or report.field not in record:
        # A null may well be text in the next record, so it is not passed over for another field.
        text_fields = [name for name, value in record.items() if value is None or isinstance(value, str)]
        report.field = choose_field(list(record), text_fields, report.field, place, "field")
    text = record[report.field]
    if not isinstance(text, str):
        raise MalmoiError(f"{place}: the field {report.field!r} should hold text but holds {_kind(text)}")
    if "\\u" in line:
        # JSON can write half a surrogate pair, which no encoding can.
        text = _LONE_SURROGATE.sub("\ufffd", text)
    return _with_plain_line_ends(text, place)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}.get(
        type(value), "an object"
    )


def _with_plain_line_ends(text: str, place: str) -> str:
    if "\0" in text:
        raise MalmoiError(f"{place}: there is a NUL character in the text; take it out")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_csv(chunks: Iterator[str], report: SourceReport, field: str | None, complain: Complain) -> Iterator[Document]:
    """Comma-separated values with a header line; a field in quotes may hold commas, quotes ("") and line ends."""
    return _read_rows(csv_rows(chunks, report.path), report, field, complain)


def csv_rows(chunks: Iterator[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the line it begins on."""
    # The module's own limit is the same for everybody, and at 128 kB too low for documents.
    csv.field_size_limit(max(LONGEST_CHARACTERS, csv.field_size_limit()))
    reader = csv.reader((line + "\n" for line in cut_lines(chunks, name)), strict=True)
    line = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as mistake:
            raise MalmoiError(
                f"{name}, line {line}: the row that begins here is not proper CSV ({mistake}); "
                "mend its quotation marks, or give --format tsv if the file knows no quoting"
            ) from None
        if row is None:
            return
        yield line, row
        line = reader.line_num + 1


def read_tsv(chunks: Iterator[str], report: SourceReport, field: str | None, complain: Complain) -> Iterator[Document]:
    """Tab-separated values with a header line. Quotation marks are text like any other, as in GLUE's files."""
    return _read_rows(tsv_rows(chunks, report.path), report, field, complain)


def tsv_rows(chunks: Iterator[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a TSV file, each with its line."""
    for number, line in enumerate(cut_lines(chunks, name), 1):
        yield number, line.split("\t") if line else []


def _read_rows(
    rows: Iterable[tuple[int, list[str]]], report: SourceReport, field: str | None, complain: Complain
) -> Iterator[Document]:
    columns: list[str] = []
    place = 0
    for line, row in rows:
        if not row:
            continue
        if not columns:
            columns = row
            report.field = choose_field(columns, columns, field, f"{report.path}, line {line}", "column")
            place = columns.index(report.field)
        elif len(row) != len(columns):
            complain(
                MalmoiError(
                    f"{report.path}, line {line}: {_fields(len(columns))} expected as in the header, {len(row)} found"
                )
            )
        else:
            yield Document(row[place], report.path, line)


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def read_parquet(
    file: str | IO[bytes],
    report: SourceReport,
    field: str | None,
    complain: Complain,
    show: Callable[[float], None],
) -> Iterator[Document]:
    """One column of a Parquet file; the others are not even read. A null counts as an empty text.

    `show` is told what share of the rows has been read.
    """
    import pyarrow
    import pyarrow.parquet

    row = 0
    try:
        with pyarrow.parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as table:
            schema = table.schema_arrow
            text_names = [column.name for column in schema if holds_text(column.type)]
            report.field = choose_field(schema.names, text_names, field, report.path, "column")
            if report.field not in text_names:
                kind = schema.field(report.field).type
                raise MalmoiError(f"{report.path}: the column {report.field!r} should hold text but holds {kind}")
            for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=[report.field]):
                for text in batch.column(0).to_pylist():
                    row += 1
                    try:
                        text = _with_plain_line_ends(text or "", f"{report.path}, row {row}")
                    except MalmoiError as mistake:
                        complain(mistake)
                        continue
                    yield Document(text, report.path, row)
                show(row / table.metadata.num_rows)
            show(1.0)
    except (pyarrow.ArrowException, OSError) as mistake:
        reason = str(mistake).partition("\n")[0].rstrip(".")
        raise MalmoiError(f"{report.path}: this is not a Parquet file, or a damaged one ({reason})") from None
    except UnicodeDecodeError:
        raise MalmoiError(f"{report.path}: the text after row {row} is not valid UTF-8") from None


def holds_text(kind: Any) -> bool:
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    )
