"""Plain text → lines and documents, streamed: a document is a file, a line, an article, or between blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from malmoi.errors import MalmoiError
from malmoi.text.sources import SourceReport
from malmoi.values import Document

# Nobody's document is this long; a file read with the wrong rule is. It bounds the memory that reading takes.
LONGEST_CHARACTERS = 16 << 20
HEAD_CHARACTERS = 256 << 10

# A line of only white space separates documents as an empty one does.
_BLANK_LINES = re.compile(r"(\n(?:[^\S\n]*+\n)+)")
_BLANK_LINES_AT_START = re.compile(r"(?:[^\S\n]*+\n)+")
# " = Title = " begins an article, as in the WikiText corpora; " = = Section = = " does not.
_TITLE = re.compile(r" ?= (?!= ).*(?<! =) =\s*")


def cut_lines(chunks: Iterable[str], name: str) -> Iterator[str]:
    """The lines of a text, without their ends. Only `\\n` ends a line here, not all that str.splitlines would take."""
    pieces: list[str] = []
    length, number = 0, 1
    for chunk in chunks:
        lines = chunk.split("\n")
        pieces.append(lines[0])
        length += len(lines[0])
        if length > LONGEST_CHARACTERS:
            raise MalmoiError(
                f"{name}, line {number}: this line is longer than {LONGEST_CHARACTERS:,} characters; "
                "break it into lines, or give --format if this is not the right way to read the file"
            )
        if len(lines) == 1:
            continue
        yield _take_all(pieces)
        yield from lines[1:-1]
        number += len(lines) - 1
        pieces, length = [lines[-1]], len(lines[-1])
    if length:
        yield _take_all(pieces)


def _take_all(pieces: list[str]) -> str:
    """The pieces joined. They are gone from the list, for they may be large."""
    joined = "".join(pieces)
    pieces.clear()
    return joined


def read_plain_text(chunks: Iterator[str], report: SourceReport, rule: str) -> Iterator[Document]:
    """Cut plain text into documents by `rule`; "auto" looks at the beginning and notes in the report what it took."""
    if rule == "auto":
        head, chunks = look_ahead(chunks)
        rule = _recognise_rule(head)
    report.rule = rule
    return _RULES[rule](chunks, report.path)


def _recognise_rule(head: str) -> str:
    text = head.strip()
    if _TITLE.fullmatch(text.partition("\n")[0]):
        return "wiki"
    if _BLANK_LINES.search(text):
        return "blank"
    return "file" if len(head) < HEAD_CHARACTERS else "line"


def look_ahead(chunks: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The beginning of the text (all of it, if it is shorter than the look ahead), and the whole text still."""
    seen: list[str] = []
    length = 0
    for chunk in chunks:
        seen.append(chunk)
        length += len(chunk)
        if length >= HEAD_CHARACTERS:
            break
    return "".join(seen)[:HEAD_CHARACTERS], chain(seen, chunks)


def _one_each_line(chunks: Iterator[str], name: str) -> Iterator[Document]:
    for number, line in enumerate(cut_lines(chunks, name), 1):
        if line and not line.isspace():
            yield Document(line, name, number)


def _one_each_file(chunks: Iterator[str], name: str) -> Iterator[Document]:
    pieces: list[str] = []
    length = 0
    for chunk in chunks:
        pieces.append(chunk)
        length += len(chunk)
        if length > LONGEST_CHARACTERS:
            raise _too_long(name, 1, "choose --documents blank or --documents line")
    text = "".join(pieces)
    if text and not text.isspace():
        yield Document(text, name, 1)


def _between_blank_lines(chunks: Iterator[str], name: str) -> Iterator[Document]:
    rest, line = "", 1
    for chunk in chunks:
        text = rest + chunk
        # Blank lines may have been cut by the chunk's end: those of the last chunk are behind us already.
        if blank := _BLANK_LINES_AT_START.match(text):
            line += text.count("\n", 0, blank.end())
            text = text[blank.end() :]
        # Documents and what separates them, in turn; the last document may go on in the next chunk.
        *pieces, rest = _BLANK_LINES.split(text)
        for document, blank_lines in zip(pieces[0::2], pieces[1::2], strict=True):
            yield Document(document, name, line)
            line += document.count("\n") + blank_lines.count("\n")
        if len(rest) > LONGEST_CHARACTERS:
            raise _too_long(name, line, "choose --documents line")
    if rest and not rest.isspace():
        yield Document(rest.removesuffix("\n"), name, line)


def _from_title_to_title(chunks: Iterator[str], name: str) -> Iterator[Document]:
    lines: list[str] = []
    begin, length = 1, 0
    for number, line in enumerate(cut_lines(chunks, name), 1):
        if line.startswith((" = ", "= ")) and _TITLE.fullmatch(line):
            yield Document("\n".join(lines), name, begin)
            lines, begin, length = [], number, 0
        lines.append(line)
        length += len(line)
        if length > LONGEST_CHARACTERS:
            raise _too_long(name, begin, "choose --documents blank or --documents line")
    yield Document("\n".join(lines), name, begin)


_RULES = {
    "file": _one_each_file,
    "blank": _between_blank_lines,
    "line": _one_each_line,
    "wiki": _from_title_to_title,
}


def _too_long(name: str, line: int, remedy: str) -> MalmoiError:
    return MalmoiError(
        f"{name}, line {line}: the document that begins here is longer than {LONGEST_CHARACTERS:,} characters; {remedy}"
    )
