"""A file → its texts, one a record: a line of plain text, a JSON line, a row of CSV, TSV or Parquet.

Unlike a corpus, nothing is left out: a text may be empty, and the n-th text stays the n-th.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from cyclopts import Parameter

from malmoi.errors import MalmoiError
from malmoi.text.files import Files, fields_of, read_records, refuse
from malmoi.text.json_records import name_kind
from malmoi.text.plaintext import cut_lines
from malmoi.text.reading import Format, choose_text, refuse_unknown
from malmoi.text.recognition import FileOptions
from malmoi.text.records import Choose, Record, read_text
from malmoi.text.sources import Source, SourceReport

Identity = str | int


@Parameter(name="*")
@dataclass(frozen=True)
class RowOptions(FileOptions):
    """How a file of texts is to be read."""

    format: Annotated[Format, Parameter(help="What the file is; auto goes by its ending and contents.")] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unknown("format", self.format, get_args(Format))


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text, the id that its record has (else its number, counted from 0), and where it stands."""

    text: str
    id: Identity
    place: str


class TextRows(Files):
    """The texts of one file, as an iterable. `bytes_read` tells how far it is."""

    def __init__(
        self,
        path: str | Path,
        text_field: str | None = None,
        id_field: str | None = None,
        options: RowOptions | None = None,
    ) -> None:
        if Path(path).is_dir():
            raise MalmoiError(f"{path} is a folder; give one file.")
        self.options = options or RowOptions()
        super().__init__([path], self.options.format, self.options)
        self.fields = text_field, id_field
        if self.source.size is not None:
            # What is wrong with fields and options is said at once, by reading the first text.
            next(iter(self), None)
            self.rewind()

    @property
    def source(self) -> Source:
        return self.sources[0]

    def __iter__(self) -> Iterator[TextRow]:
        self.rewind()
        report = self.open(self.source)
        word = "row" if report.format == "parquet" else "line"
        for number, (line, values) in enumerate(self._records(report)):
            place = f"{report.path}, {word} {line}"
            yield TextRow(_check_text(values[0], place), _check_id(values[1], place) if values[1:] else number, place)

    def _records(self, report: SourceReport) -> Iterator[Record]:
        if report.format == "parquet":
            return self.parquet(self.source, report, self._choose(report), refuse, mend_lines=False)
        text = self.text(self.source, report, mend_lines=report.format != "csv")
        text = self.recognise(report, text, self.fields)
        if report.format == "txt":
            if any(self.fields):
                option = "--text" if self.fields[0] else "--id"
                raise MalmoiError(f"{option}: {self.source.name} is plain text, a text a line; it has no fields.")
            return (Record(number, [line]) for number, line in enumerate(cut_lines(text, report.path), 1))
        return read_records(text, report, self._choose(report), refuse, mend=False, mend_lines=False)

    def _choose(self, report: SourceReport) -> Choose:
        text_field, id_field = self.fields
        choose = choose_text(report, text_field)

        def choose_both(kinds: Mapping[str, str], place: str) -> list[str]:
            chosen = list(choose(kinds, place))
            if id_field is not None:
                chosen.append(fields_of(report, list(kinds), place).require("id", id_field))
            return chosen

        return choose_both


def _check_text(value: object, place: str) -> str:
    text = read_text(value)
    if text is None:
        raise MalmoiError(f"{place}: there is {name_kind(value)} where the text should be.")
    return text


def _check_id(id: object, place: str) -> Identity:
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise MalmoiError(f"{place}: the id is {id!r}; it must be a text or a whole number.")
    return id
