"""SQuAD's JSON, 1.1 and 2.0: articles of paragraphs, each a context with its questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from malmoi.errors import MalmoiError
from malmoi.tasks.answers import parse_answers
from malmoi.tasks.examples import Question
from malmoi.tasks.rows import EmptyText
from malmoi.text.fields import list_names
from malmoi.text.json_records import name_kind, parse_json
from malmoi.text.records import Complain, clean_value
from malmoi.text.sources import SourceReport


def read_squad(chunks: Iterator[str], report: SourceReport, labelled: bool, complain: Complain) -> Iterator[Question]:
    """The questions of a file. It is one JSON object, so it is read as a whole."""
    articles = _part(parse_json("".join(chunks), f"{report.path}, line 1", 1), "data", list, report.path)
    for number, article in enumerate(articles, 1):
        for paragraph_number, paragraph in enumerate(
            _part(article, "paragraphs", list, f"{report.path}, article {number}"), 1
        ):
            place = f"{report.path}, article {number}, paragraph {paragraph_number}"
            context = clean_value(_part(paragraph, "context", str, place), place, mend_lines=False)
            for question in _part(paragraph, "qas", list, place):
                try:
                    yield _question(question, context, place, labelled)
                except MalmoiError as mistake:
                    complain(mistake)


def _question(question: Any, context: str, place: str, labelled: bool) -> Question:
    if not isinstance(question, dict):
        raise MalmoiError(f"{place}: a question should be an object, not {name_kind(question)}")
    id = question.get("id", question.get("guid"))
    if not isinstance(id, str | int):
        raise MalmoiError(f"{place}: a question has no id")
    place = f"{place}, question {id}"
    text = clean_value(_part(question, "question", str, place), place, mend_lines=False)
    if not labelled:
        return Question(str(id), text, context, None, False, place)
    for part, name in ((text, "question"), (context, "context")):
        if not part.strip():
            raise EmptyText(f"{place}: the {name} is empty; fill it in, or leave such examples out with --skip-empty")
    impossible = question.get("is_impossible")
    if impossible not in (None, True, False):
        raise MalmoiError(f"{place}: is_impossible should be true or false")
    value = clean_value(_part(question, "answers", list, place), place, mend_lines=False)
    answers, is_impossible = parse_answers(value, None, impossible, place)
    return Question(str(id), text, context, answers, is_impossible, place)


def _part(value: Any, name: str, kind: type, place: str) -> Any:
    if not isinstance(value, dict):
        raise MalmoiError(f"{place}: an object with {name!r} is wanted here, as in SQuAD, not {name_kind(value)}")
    if name not in value:
        raise MalmoiError(
            f"{place}: there is no {name!r} among {list_names(list(value))}; is this a file of SQuAD's form?"
        )
    if not isinstance(value[name], kind):
        wanted = "text" if kind is str else "a list"
        raise MalmoiError(f"{place}: {name!r} should hold {wanted} but holds {name_kind(value[name])}")
    return value[name]
