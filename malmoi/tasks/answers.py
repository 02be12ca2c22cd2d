"""Answers to questions: pieces of a context with the place where they begin, which is mended where it is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from malmoi.errors import MalmoiError
from malmoi.tasks.examples import Answer, Question
from malmoi.text.json_records import name_kind

_SHOWN_CHARACTERS = 60


def find_nearest(context: str, text: str, start: int) -> int | None:
    """Where `text` begins in `context`, nearest to `start`; of two at the same distance the earlier."""
    before = context.rfind(text, 0, max(0, start) + len(text))
    after = context.find(text, max(0, start))
    if before < 0 or (after >= 0 and after - start < start - before):
        before = after
    return None if before < 0 else before


def repair_answers(question: Question) -> tuple[Question, int]:
    """The question with all answers where they say they are, and how many had to be mended.

    An answer is looked for nearest to its offset (which may count bytes or UTF-16 units, or spaces since removed); one
    that is nowhere in its context is refused.
    """
    repaired, answers = 0, []
    for answer in question.answers or ():
        start = answer.start
        if start >= 0 and question.context.startswith(answer.text, start):
            answers.append(answer)
            continue
        for text in (answer.text, answer.text.strip()):
            found = find_nearest(question.context, text, start)
            if found is not None:
                answers.append(Answer(text, found))
                # Where no offset was given, none was wrong.
                repaired += start >= 0
                break
        else:
            shown = answer.text if len(answer.text) <= _SHOWN_CHARACTERS else answer.text[:_SHOWN_CHARACTERS] + "…"
            raise MalmoiError(
                f"{question.place}: the answer {shown!r} is not in its context; mend it or take the question out"
            )
    return (question if question.answers is None else replace(question, answers=tuple(answers))), repaired


def parse_answers(value: Any, start: Any, impossible: bool | None, place: str) -> tuple[tuple[Answer, ...], bool]:
    """Answers in any of the usual forms, and whether there is none because the question cannot be answered.

    The forms are SQuAD's list of {"text", "answer_start"}, the {"text": […], "answer_start": […]} of the `datasets`
    library, and a text with or without a column for its start.
    """
    texts: Any
    starts: Any
    if isinstance(value, str):
        texts, starts = ([value], [start]) if value.strip() else ([], [])
    elif isinstance(value, dict):
        texts, starts = value.get("text"), value.get("answer_start")
    elif isinstance(value, list):
        if not all(isinstance(item, dict) for item in value):
            raise MalmoiError(f"{place}: a list of answers holds objects with text and answer_start")
        texts, starts = [item.get("text") for item in value], [item.get("answer_start") for item in value]
    elif value is None:
        texts, starts = [], []
    else:
        raise MalmoiError(f"{place}: answers are wanted here, not {name_kind(value)}")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        raise MalmoiError(f"{place}: text and answer_start have to be lists of one length")
    answers = tuple(_answer(text, start, place) for text, start in zip(texts, starts, strict=True))
    if impossible and answers:
        raise MalmoiError(f"{place}: is_impossible is true, yet there is an answer; mend one of them")
    if impossible is False and not answers:
        raise MalmoiError(f"{place}: there is no answer, yet is_impossible is false; mend one of them")
    return answers, not answers


def _answer(text: Any, start: Any, place: str) -> Answer:
    if not isinstance(text, str) or not text.strip():
        raise MalmoiError(f"{place}: an answer needs a text")
    if isinstance(start, str) and start.strip().lstrip("-").isdecimal():
        start = int(start)
    if isinstance(start, float) and start.is_integer():
        start = int(start)
    if start is None or start == "":
        # Nothing is known of the place: the search begins before the context, and so does not take it for right.
        start = -1
    if isinstance(start, bool) or not isinstance(start, int):
        raise MalmoiError(f"{place}: answer_start {start!r} is not a whole number; it counts characters from 0")
    return Answer(text, start)
