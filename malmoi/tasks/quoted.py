"""Texts in quotation marks on the command line, where files could stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from malmoi.errors import MalmoiError
from malmoi.tasks.columns import TaskName
from malmoi.tasks.examples import Asked, Choice, Classified, Example, Question, Scored, Untagged
from malmoi.text.given import check_text
from malmoi.text.sources import FORMAT_OF_ENDING, STANDARD_INPUT, Source


def are_texts(words: Sequence[str]) -> bool:
    """Whether none of the words is a file, nor looks like one."""
    if any(map(_is_file, words)):
        for word in words:
            if not _is_file(word):
                raise MalmoiError(f"{word}: there is no such file or folder; give files alone, or texts alone.")
        return False
    return bool(words)


def _is_file(word: str) -> bool:
    if word in STANDARD_INPUT:
        return True
    try:
        if Path(word).exists():
            return True
    except (OSError, ValueError):  # longer than a name may be
        return False
    looks_like_path = "/" in word and not any(map(str.isspace, word))
    return looks_like_path or Source(Path(word), None).ending in FORMAT_OF_ENDING


def ask_texts(task: TaskName, texts: Sequence[str]) -> list[Asked]:
    """Quoted texts as rows: each by itself; two as a pair; a question and its context; a prompt and its choices."""
    given = [check_text(text, f"text {number}") for number, text in enumerate(texts)]
    return [
        Asked(number, None if any(not text.strip() for text in own) else _make_example(task, own), {"text": own[0]})
        for number, own in enumerate(_group(task, given))
    ]


def _group(task: TaskName, texts: Sequence[str]) -> Iterable[Sequence[str]]:
    if task in ("pair", "embed") and len(texts) != 2:
        raise MalmoiError(f"{task} is about two texts; {len(texts)} given.")
    if task == "answer" and len(texts) != 2:
        raise MalmoiError(f"answer is about two texts, the question and its context; {len(texts)} given.")
    if task == "choose" and len(texts) < 3:
        raise MalmoiError("choose is about a prompt and at least two choices; quote them one after the other.")
    return [[text] for text in texts] if task in ("classify", "regress", "tag") else [texts]


def _make_example(task: TaskName, texts: Sequence[str]) -> Example | Untagged:
    first, *others = texts
    if task == "tag":
        return Untagged(first, "")
    if task == "answer":
        return Question("", first, others[0], None, False, "")
    if task == "choose":
        return Choice(first, tuple(others), None, "")
    second = others[0] if others else None
    if task in ("classify", "pair"):
        return Classified(first, second, None, "")
    return Scored(first, second, None, "")
