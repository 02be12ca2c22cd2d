"""What a file is: as its ending promises, else as it begins. The one place where that is decided, for every command.

A table is recognised by the same number of columns in (nearly) every row and a header with a usual name. Where lines
look like a table but nothing names its columns, nobody guesses: the user is asked. What was taken in spite of a file's
ending is said aloud.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from malmoi.errors import MalmoiError, Notice
from malmoi.text.fields import list_names, looks_like_data, looks_like_header
from malmoi.text.plaintext import HEAD_CHARACTERS
from malmoi.text.records import open_csv
from malmoi.text.sources import SourceReport

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|", "space": " "}
_ROWS_LOOKED_AT = 1000
# Of a large file; a few rows may be broken, and are then complained about one by one.
_SHARE_OF_EVEN_ROWS = 0.95
_RECORDS_LOOKED_AT = 5
_SHOWN_CHARACTERS = 40


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are to be opened, whatever is made of them."""

    encoding: Annotated[str, Parameter(help="auto, or a name such as utf-8, cp949, cp1252, utf-16.")] = "auto"
    delimiter: Annotated[
        str | None, Parameter(help="What stands between the columns of a table: a character, or tab; found by itself.")
    ] = None
    no_header: Annotated[
        bool, Parameter(name="--no-header", negative="", help="There is no header: columns are called 0, 1, 2, ….")
    ] = False

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None and (len(separator) != 1 or separator in '"\n\r'):
            raise MalmoiError(f"--delimiter {self.delimiter}: give one character, such as ; or a name: tab, comma")

    @property
    def separator(self) -> str | None:
        """The character itself."""
        return None if self.delimiter is None else _NAMES.get(self.delimiter, self.delimiter)


def recognise(
    head: str, report: SourceReport, options: FileOptions, *, is_told: bool, wanted: Sequence[str], needs_table: bool
) -> None:
    """Settle in `report` what a text is, by its beginning: format, delimiter, header.

    `is_told`: the user has named the format. `wanted` are the columns that the user names. With `needs_table` (a task)
    whatever has tabs is a table.
    """
    lines = _whole_lines(head)
    if report.format == "txt" and not is_told:
        _recognise_text(lines, report, options, wanted, needs_table)
    if report.format not in ("csv", "tsv"):
        return
    report.delimiter = options.separator or report.delimiter or _find_delimiter(lines, report)
    report.header = not options.no_header
    if report.header and (names := _first_row(lines, report)) is not None and len(names) == 1:
        report.header = _is_name_of_only_column(names[0], report.path, wanted)


def _recognise_text(
    lines: list[str], report: SourceReport, options: FileOptions, wanted: Sequence[str], needs_table: bool
) -> None:
    """Plain text by its name: look whether it is."""
    if options.separator is not None:
        report.format = "tsv" if options.separator == "\t" else "csv"
        return
    if _are_records(lines):
        report.format = "jsonl"
        if not needs_table:
            _say(f"{report.path}: read as JSON lines; --format txt reads it as plain text")
        return
    for delimiter in sorted(_DELIMITERS, key=lambda delimiter: delimiter != "\t"):
        format = "tsv" if delimiter == "\t" else "csv"
        rows = _split(lines, format, delimiter)
        if not rows or len(rows[0]) < 2 or not any(row[0] for row in rows):
            continue
        has_tabs = delimiter == "\t"
        is_even = len(rows) > 1 and _share_of_even(rows) >= _SHARE_OF_EVEN_ROWS
        is_named = looks_like_header(rows[0]) or any(name in rows[0] for name in wanted)
        if (has_tabs and needs_table) or (is_even and (is_named or (has_tabs and options.no_header))):
            report.format, report.delimiter = format, delimiter
            # Where there has to be a table, tabs are no guess.
            if not (has_tabs and needs_table):
                header = "no header" if options.no_header else f"the columns {list_names(rows[0])}"
                _say(
                    f"{report.path}: read as a table with {_DELIMITERS[delimiter]} between its columns and {header}; "
                    "--format txt reads it as plain text"
                )
            return
        if has_tabs and is_even:
            raise MalmoiError(
                f"{report.path}: its lines have {len(rows[0])} columns with tabs between them, like a table's. "
                "Name the column of the text with --text (and give --no-header if the first line is no header, "
                "as in --no-header --text 1), or give --format txt to read the lines as they are"
            )


def _find_delimiter(lines: list[str], report: SourceReport) -> str | None:
    """The delimiter of a table; None if there is but one column."""
    if report.format == "tsv":
        return "\t"
    widths = {delimiter: _split(lines, "csv", delimiter) for delimiter in _DELIMITERS}
    several = {delimiter: rows for delimiter, rows in widths.items() if rows and len(rows[0]) > 1}
    even = [delimiter for delimiter, rows in several.items() if _share_of_even(rows) >= _SHARE_OF_EVEN_ROWS]
    found = next(iter([*even, *several]), None)
    if found not in (None, ","):
        _say(f"{report.path}: its columns are separated by {_DELIMITERS[found]}")
    return found


def _is_name_of_only_column(first: str, path: str, wanted: Sequence[str]) -> bool:
    """Whether the first line of a table of one column is its header; the first text must not be lost."""
    if wanted or looks_like_header([first]):
        return True
    shown = first if len(first) <= _SHOWN_CHARACTERS else first[:_SHOWN_CHARACTERS] + "…"
    if not looks_like_data([first]):
        raise MalmoiError(
            f"{path}, line 1: is {shown!r} the name of the only column, or its first text? "
            f"Give --text {shown!r} if it is the name, or --no-header if it is a text"
        )
    _say(f"{path}: the only column has no header; the first line, {shown!r}, is its first text")
    return False


def _whole_lines(head: str) -> list[str]:
    lines = head.split("\n")
    if len(head) >= HEAD_CHARACTERS:
        lines.pop()  # the end of the head may have cut it
    return [line for line in lines if line.strip()][:_ROWS_LOOKED_AT]


def _split(lines: list[str], format: str, delimiter: str) -> list[list[str]]:
    if format == "tsv":
        return [line.split(delimiter) for line in lines]
    try:
        rows = list(open_csv(lines, delimiter, strict=False))
    except csv.Error:
        return []
    # A field in quotes may go on behind the lines that were looked at.
    return rows[:-1] if len(lines) == _ROWS_LOOKED_AT else rows


def _first_row(lines: list[str], report: SourceReport) -> list[str] | None:
    rows = _split(lines[:1], report.format, report.delimiter or ",")
    return rows[0] if rows else None


def _share_of_even(rows: list[list[str]]) -> float:
    return sum(len(row) == len(rows[0]) for row in rows) / len(rows)


def _are_records(lines: list[str]) -> bool:
    first = lines[:_RECORDS_LOOKED_AT]
    try:
        return bool(first) and all(
            line.lstrip().startswith("{") and isinstance(json.loads(line), dict) for line in first
        )
    except (ValueError, RecursionError):
        return False


def _say(sentence: str) -> None:
    warnings.warn(Notice(sentence), stacklevel=2)
