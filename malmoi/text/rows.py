"""A file → its texts, one a record: a line of plain text, a JSON line, a row of CSV, TSV or Parquet.

Unlike a corpus, nothing is left out: a text may be empty, and the n-th text stays the n-th.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from malmoi.errors import MalmoiError
from malmoi.text.files import Files, read_records, refuse
from malmoi.text.json_records import name_kind
from malmoi.text.plaintext import cut_lines
from malmoi.text.reading import choose_text
from malmoi.text.records import Choose, Record, require_field
from malmoi.text.sources import FORMAT_OF_ENDING, Source, SourceReport

Identity = str | int


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text, the id that its record has (else its number, counted from 0), and where it stands."""

    text: str
    id: Identity
    place: str


class TextRows(Files):
    """The texts of one file, as an iterable. `bytes_read` tells how far it is."""

    def __init__(
        self, path: str | Path, text_field: str | None = None, id_field: str | None = None, encoding: str = "auto"
    ) -> None:
        if Path(path).is_dir():
            raise MalmoiError(f"{path} is a folder; give one file.")
        super().__init__([path], encoding=encoding)
        self.fields = text_field, id_field
        self.format = FORMAT_OF_ENDING.get(self.source.ending, "txt")
        if self.format == "txt" and (text_field or id_field):
            option = "--text" if text_field else "--id"
            raise MalmoiError(f"{option}: {self.source.name} is plain text, a text a line; it has no fields.")

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
        if report.format == "txt":
            return (Record(number, [line]) for number, line in enumerate(cut_lines(text, report.path), 1))
        return read_records(text, report, self._choose(report), refuse, mend=False, mend_lines=False)

    def _choose(self, report: SourceReport) -> Choose:
        text_field, id_field = self.fields
        choose = choose_text(report, text_field, "--text")

        def choose_both(kinds: Mapping[str, str], place: str) -> list[str]:
            chosen = list(choose(kinds, place))
            if id_field is not None:
                what = "field" if report.format == "jsonl" else "column"
                chosen.append(require_field(id_field, list(kinds), place, what))
            return chosen

        return choose_both


def _check_text(text: object, place: str) -> str:
    if text is None:
        return ""
    if not isinstance(text, str):
        raise MalmoiError(f"{place}: there is {name_kind(text)} where the text should be.")
    return text


def _check_id(id: object, place: str) -> Identity:
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise MalmoiError(f"{place}: the id is {id!r}; it must be a text or a whole number.")
    return id
