"""Files of records, of which some fields are wanted: JSON lines and arrays, CSV, TSV and Parquet.

`Choose` is told what fields there are and says which are wanted; a `Record` holds their values in that order. A record
that is at fault goes to `complain`, which either raises or notes it; reading then goes on with the next.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from malmoi.errors import MalmoiError
from malmoi.text.plaintext import LONGEST_CHARACTERS, cut_lines
from malmoi.text.sources import SourceReport

Complain = Callable[[MalmoiError], None]
# Called with what each field holds (`TEXT`, or a word for something else) and the place, to name in a complaint.
Choose = Callable[[Mapping[str, str], str], Sequence[str]]

TEXT = "text"
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Rows that are decoded at a time: few, because a row may hold a whole book.
_PARQUET_ROWS = 64


class Record(NamedTuple):
    """The values of the chosen fields, and the line (in Parquet the row) where the record begins."""

    line: int
    values: list[Any]


def read_text(value: Any) -> str | None:
    """A value that should be a text, or None if it is something else. A null is an empty text in every format."""
    if is_null(value):
        return ""
    return value if isinstance(value, str) else None


def is_null(value: Any) -> bool:
    """Whether there is no value: a null, or the NaN that pandas writes instead."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def clean_text(text: str, place: str, *, mend_lines: bool = True) -> str:
    """A text that did not pass through the decoder of files: it has no NUL, and its lines end in `\\n` unless it is to
    stay as it was given, because places in it are."""
    if "\0" in text:
        raise MalmoiError(f"{place}: there is a NUL character in the text; take it out")
    return text.replace("\r\n", "\n").replace("\r", "\n") if mend_lines and "\r" in text else text


def clean_value(value: Any, place: str, *, mend_lines: bool = True) -> Any:
    """The same for every text in a value of lists and objects."""
    if isinstance(value, str):
        return clean_text(value, place, mend_lines=mend_lines)
    if isinstance(value, list):
        return [clean_value(item, place, mend_lines=mend_lines) for item in value]
    if isinstance(value, dict):
        return {name: clean_value(item, place, mend_lines=mend_lines) for name, item in value.items()}
    return value


def read_table(chunks: Iterator[str], report: SourceReport, choose: Choose, complain: Complain) -> Iterator[Record]:
    """The rows of a table; without a header its columns are called 0, 1, 2 and so on.

    In csv a field in quotes may hold delimiters, quotes ("") and line ends. In tsv quotation marks are text like any
    other, as in GLUE's files.
    """
    lines = cut_lines(chunks, report.path)
    if report.format == "tsv":
        delimiter = report.delimiter or "\t"
        rows: Iterable[tuple[int, list[str]]] = (
            (number, line.split(delimiter) if line else []) for number, line in enumerate(lines, 1)
        )
    else:
        rows = _csv_rows(open_csv(lines, report.delimiter or ",", strict=True), report.path)
    return _read_rows(rows, report, choose, complain)


def open_csv(lines: Iterable[str], delimiter: str, *, strict: bool) -> Any:
    """A reader of the csv module, whose own limit for a field is at 128 kB too low for documents."""
    # The limit is the same for everybody in the process.
    csv.field_size_limit(max(LONGEST_CHARACTERS, csv.field_size_limit()))
    return csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=strict)


def _csv_rows(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
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


def _read_rows(
    rows: Iterable[tuple[int, list[str]]], report: SourceReport, choose: Choose, complain: Complain
) -> Iterator[Record]:
    columns: list[str] = []
    places: list[int] = []
    for line, row in rows:
        if not row:
            if len(columns) != 1:
                continue
            row = [""]  # in a file of one column an empty line is an empty field
        if not columns:
            columns = row if report.header else [str(number) for number in range(len(row))]
            place = f"{report.path}, line {line}"
            chosen = choose(dict.fromkeys(columns, TEXT), place)
            _refuse_twins(chosen, columns, place, "; or give --no-header and its number" if report.header else "")
            places = [columns.index(name) for name in chosen]
            if report.header:
                continue
        if len(row) != len(columns):
            model = "the header" if report.header else "the first row"
            complain(
                MalmoiError(
                    f"{report.path}, line {line}: {_fields(len(columns))} expected as in {model}, {len(row)} found"
                    + ('; a field that holds its delimiter has to stand in "quotes"' if report.format == "csv" else "")
                )
            )
        else:
            yield Record(line, [row[place] for place in places])


def _refuse_twins(chosen: Iterable[str], columns: Sequence[str], place: str, hint: str = "") -> None:
    for name in chosen:
        if columns.count(name) > 1:
            count = columns.count(name)
            raise MalmoiError(f"{place}: {count} columns are called {name!r}; rename all but one of them{hint}")


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def read_parquet(
    file: str | IO[bytes],
    report: SourceReport,
    choose: Choose,
    complain: Complain,
    show: Callable[[float], None],
    *,
    mend_lines: bool = True,
) -> Iterator[Record]:
    """Some columns of a Parquet file; the others are not even read.

    `show` is told what share of the rows has been read.
    """
    import pyarrow
    import pyarrow.parquet

    row = 0
    try:
        with pyarrow.parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as table:
            kinds = {
                column.name: TEXT if _holds_text(column.type) else str(column.type) for column in table.schema_arrow
            }
            report.value_names = _find_value_names(table.schema_arrow)
            chosen = list(choose(kinds, report.path))
            _refuse_twins(chosen, table.schema_arrow.names, report.path)
            for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=chosen):
                for values in zip(*(batch.column(name).to_pylist() for name in chosen), strict=True):
                    row += 1
                    try:
                        cleaned = clean_value(list(values), f"{report.path}, row {row}", mend_lines=mend_lines)
                    except MalmoiError as mistake:
                        complain(mistake)
                        continue
                    yield Record(row, cleaned)
                show(row / table.metadata.num_rows)
            show(1.0)
    except (pyarrow.ArrowException, OSError) as mistake:
        reason = str(mistake).partition("\n")[0].rstrip(".")
        raise MalmoiError(f"{report.path}: this is not a Parquet file, or a damaged one ({reason})") from None
    except UnicodeDecodeError:
        raise MalmoiError(f"{report.path}: the text after row {row} is not valid UTF-8") from None


def _find_value_names(schema: Any) -> dict[str, list[str]]:
    """What the numbers of each column stand for, as the library `datasets` notes it in its files."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        named = {column: _find_names(feature) for column, feature in features.items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {column: names for column, names in named.items() if names}


def _find_names(feature: Any) -> list[str]:
    """The names of a class, or of the classes that a list holds."""
    if isinstance(feature, list) and len(feature) == 1:
        return _find_names(feature[0])
    if not isinstance(feature, dict):
        return []
    names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
    return list(map(str, names)) if isinstance(names, list) else _find_names(feature.get("feature"))


def _holds_text(kind: Any) -> bool:
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    )
