"""Records of JSON: an object a line, or one array of objects, read as a stream either way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from malmoi.errors import MalmoiError
from malmoi.text.plaintext import HEAD_CHARACTERS, LONGEST_CHARACTERS, cut_lines
from malmoi.text.records import LONE_SURROGATE, TEXT, Choose, Complain, Record, clean_value
from malmoi.text.sources import SourceReport

_SPACE = " \t\n\r"
_MISSING = object()
_NULL = "null"
_RECORDS_LOOKED_AT = 100
_DECODER = json.JSONDecoder()


def read_json(
    chunks: Iterator[str],
    report: SourceReport,
    choose: Choose,
    complain: Complain,
    *,
    mend: bool = True,
    mend_lines: bool = True,
) -> Iterator[Record]:
    """JSON objects, of which a field within a field is called `outer.inner`.

    JSON can write half a surrogate pair, which no encoding can; it is replaced by U+FFFD unless `mend` is false.
    """
    first = next((chunk for chunk in chunks if chunk), "")
    is_array = first.lstrip().startswith("[")
    text_chunks = chain([first], chunks)
    texts = _Array(text_chunks, report.path) if is_array else _cut_lines(text_chunks, report.path)
    head, records = _look_ahead(_parse_each(texts, report.path, is_array))
    chosen: Sequence[str] = ()
    kinds = _unite([_kinds_of(one.record) for one in head if isinstance(one.record, dict)])
    del head  # what may be large is not held longer than it is needed
    for line, _, has_escapes, record in records:
        place = f"{report.path}, line {line}"
        try:
            if isinstance(record, MalmoiError):
                raise record
            if not chosen:
                # The first record alone may lack a field, or hold a null in it.
                chosen = choose(kinds or _unite([_kinds_of(record)]), place)
            values = [_look_up(record, name) for name in chosen]
            if _MISSING in values:
                chosen = choose(_unite([_kinds_of(record)]), place)
                values = [_look_up(record, name) for name in chosen]
                # A field that may be left out.
                values = [None if value is _MISSING else value for value in values]
            if mend and has_escapes:
                values = [_without_surrogates(value) for value in values]
            cleaned = clean_value(values, place, mend_lines=mend_lines)
        except MalmoiError as mistake:
            complain(mistake)
            continue
        yield Record(line, cleaned)


class _Parsed(NamedTuple):
    """A record with its line, how long it is written, and whether with characters as numbers; or what is wrong with
    it."""

    line: int
    length: int
    has_escapes: bool
    record: dict[str, Any] | MalmoiError


def _parse_each(texts: Iterable[tuple[int, str]], name: str, is_array: bool) -> Iterator[_Parsed]:
    for line, text in texts:
        place = f"{name}, line {line}"
        record: Any
        try:
            record = parse_json(text, place, line if is_array else None)
            if not isinstance(record, dict):
                record = MalmoiError(f"{place}: a JSON object ({{…}}) is wanted here, not {name_kind(record)}")
        except MalmoiError as mistake:
            record = mistake
        parsed = _Parsed(line, len(text), "\\u" in text, record)
        del text, record
        yield parsed
        del parsed


def _look_ahead(records: Iterator[_Parsed]) -> tuple[list[_Parsed], Iterator[_Parsed]]:
    """The first records, and all of them still."""
    head: list[_Parsed] = []
    length = 0
    try:
        for one in records:
            head.append(one)
            length += one.length
            if len(head) == _RECORDS_LOOKED_AT or length >= HEAD_CHARACTERS:
                break
    except MalmoiError as mistake:
        # The file cannot be read on from there: what was read before comes first.
        return head, chain(head, _raise(mistake))
    return head, chain(head, records)


def _raise(mistake: MalmoiError) -> Iterator[_Parsed]:
    raise mistake
    yield  # makes this an iterator, so that it raises when its turn comes


def parse_json(text: str, place: str, first_line: int | None = None) -> Any:
    """What a JSON text means. `first_line` is its line in the file, if the mistake may be lines further down."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as mistake:
        where = f"column {mistake.colno}"
        if first_line is not None and mistake.lineno > 1:
            where = f"line {first_line + mistake.lineno - 1}, {where}"
        raise MalmoiError(f"{place}: this is not JSON ({mistake.msg}, {where})") from None
    except (ValueError, RecursionError):
        raise MalmoiError(f"{place}: nested too deep or with too long a number to be read") from None


def name_kind(value: Any) -> str:
    """What a value of JSON is, in a word."""
    if value is None:
        return _NULL
    return {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}.get(
        type(value), "an object"
    )


def _cut_lines(chunks: Iterator[str], name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(cut_lines(chunks, name), 1):
        if line and not line.isspace():
            yield number, line


class _Array:
    """The items of one JSON array, each as the text it is written in."""

    def __init__(self, chunks: Iterator[str], name: str) -> None:
        self._chunks = chunks
        self._name = name
        self._buffer = ""
        self._place = 0
        self._line = 1

    def __iter__(self) -> Iterator[tuple[int, str]]:
        self._next_mark()
        self._place += 1
        if self._next_mark() == "]":
            self._place += 1
        else:
            yield from self._items()
        if rest := self._next_mark():
            raise self._fault(f"there is {rest!r} after the end of the JSON array; take it out")

    def _items(self) -> Iterator[tuple[int, str]]:
        mark = ","
        while mark == ",":
            self._next_mark()
            text = self._item()
            yield self._line, text
            self._line += text.count("\n")
            mark = self._next_mark()
            self._place += 1
            if mark not in (",", "]"):
                raise self._fault("a comma or ] is wanted after an item of the JSON array")

    def _next_mark(self) -> str:
        """Go to the next character that is no space, and return it; nothing at the end of the file."""
        while True:
            while self._place < len(self._buffer):
                character = self._buffer[self._place]
                if character not in _SPACE:
                    return character
                self._line += character == "\n"
                self._place += 1
            self._buffer, self._place = next(self._chunks, ""), 0
            if not self._buffer:
                return ""

    def _item(self) -> str:
        while True:
            try:
                _, end = _DECODER.raw_decode(self._buffer, self._place)
                # A number may go on in the next chunk.
                is_whole = end < len(self._buffer)
            except (ValueError, RecursionError):
                is_whole = False
            if is_whole:
                text = self._buffer[self._place : end]
                self._place = end
                return text
            if len(self._buffer) - self._place > LONGEST_CHARACTERS:
                raise self._fault(
                    f"the item that begins here is broken, or longer than {LONGEST_CHARACTERS:,} characters"
                )
            more = next(self._chunks, None)
            if more is None:
                if rest := self._buffer[self._place :]:
                    parse_json(rest, f"{self._name}, line {self._line}", self._line)
                raise self._fault("the JSON array ends too early; fetch the file anew")
            self._buffer, self._place = self._buffer[self._place :] + more, 0

    def _fault(self, what: str) -> MalmoiError:
        return MalmoiError(f"{self._name}, line {self._line}: {what}")


def _kinds_of(record: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    kinds = {}
    for name, value in record.items():
        kinds[prefix + name] = TEXT if isinstance(value, str) else name_kind(value)
        if isinstance(value, dict):
            kinds |= _kinds_of(value, f"{prefix}{name}.")
    return kinds


def _unite(all_kinds: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What each field holds in several records: text, if it does so in one of them, or has nothing but nulls."""
    united: dict[str, str] = {}
    for kinds in all_kinds:
        for name, kind in kinds.items():
            if kind == TEXT or united.get(name, _NULL) == _NULL:
                united[name] = kind
    return {name: TEXT if kind == _NULL else kind for name, kind in united.items()}


def _look_up(record: Mapping[str, Any], name: str) -> Any:
    if name in record or "." not in name:
        return record.get(name, _MISSING)
    outer, _, inner = name.partition(".")
    within = record.get(outer)
    return _look_up(within, inner) if isinstance(within, dict) else _MISSING


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_surrogates(item) for name, item in value.items()}
    return value
