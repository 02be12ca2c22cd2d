"""CoNLL's form: a word and its tag a line, a blank line between sentences. A word may be one character, as in KLUE."""

from __future__ import annotations

import re
from collections.abc import Iterator

from malmoi.errors import MalmoiError
from malmoi.tasks.columns import Columns
from malmoi.tasks.examples import Tagged
from malmoi.text.plaintext import cut_lines
from malmoi.text.records import Complain
from malmoi.text.sources import SourceReport

# "# text = …" and "## …" before the words of a sentence; "# O" is a word with its tag.
_COMMENT = re.compile(r"#+ ")
_TAG = re.compile(r"O|[BIESLUM]-\S+")
_DOCUMENT_MARK = "-DOCSTART-"


def looks_like_conll(head: str) -> bool:
    """Whether a text has words a line; if not, it has a sentence a line. `head` is its beginning."""
    for line in head.split("\n"):
        if line.strip() and not _is_comment(line):
            fields = line.split()
            return "\t" in line or len(fields) == 1 or bool(_TAG.fullmatch(fields[-1]))
    return True


def read_conll(
    chunks: Iterator[str], report: SourceReport, columns: Columns, labelled: bool, complain: Complain
) -> Iterator[Tagged]:
    """The sentences of a file. The word is the first field of a line and the tag the last, unless numbers are given."""
    word_number, tag_number = _number("text", columns.text, 0), _number("label", columns.label, -1)
    words: list[str] = []
    tags: list[str] = []
    first = count = 0
    faulty = False
    # A blank line more ends the last sentence.
    for number, line in enumerate(_with_end(cut_lines(chunks, report.path)), 1):
        if not line.strip():
            if words and not faulty and words != [_DOCUMENT_MARK]:
                yield Tagged(tuple(words), tuple(tags) if labelled else None, f"{report.path}, line {first}")
            words, tags, faulty = [], [], False
            continue
        if not words and not faulty and _is_comment(line):
            continue
        if faulty:
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        place = f"{report.path}, line {number}"
        if not words:
            first, count = number, len(fields)
        try:
            if len(fields) != count:
                raise MalmoiError(
                    f"{place}: {len(fields)} fields, but {count} in the line the sentence begins with; "
                    "each word needs its tag, and sentences a blank line between them"
                )
            words.append(_field(fields, word_number, "word", place))
            if labelled:
                if count == 1 and fields != [_DOCUMENT_MARK]:
                    raise MalmoiError(
                        f"{place}: a word and its tag are wanted here, with a tab or a space between them"
                    )
                tags.append(_field(fields, tag_number, "tag", place).strip())
        except MalmoiError as mistake:
            complain(mistake)
            faulty = True


def _with_end(lines: Iterator[str]) -> Iterator[str]:
    yield from lines
    yield ""


def _is_comment(line: str) -> bool:
    if not _COMMENT.match(line):
        return False
    fields = line.split()
    return not (len(fields) == 2 and _TAG.fullmatch(fields[1]))


def _field(fields: list[str], number: int, what: str, place: str) -> str:
    if number >= len(fields):
        raise MalmoiError(f"{place}: there is no column {number} for the {what}; there are {len(fields)}, from 0 on")
    # A space is a word of its own where characters are the words.
    if not fields[number] or (what == "tag" and fields[number].isspace()):
        raise MalmoiError(f"{place}: the {what} is empty; a word and its tag are wanted, with a tab between them")
    return fields[number]


def _number(option: str, given: str | None, usual: int) -> int:
    if given is None:
        return usual
    if not given.isdecimal():
        raise MalmoiError(
            f"--{option} {given}: a file of words and tags has no header; give the number of the column, from 0 on, "
            "or --format tsv if there is a header"
        )
    return int(given)
