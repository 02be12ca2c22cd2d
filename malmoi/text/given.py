"""The one check at the door: what a caller of a Python method gives as texts, before anything is computed.

A single text stands for itself, and gets a single answer; several come as anything that can be gone through in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from malmoi.errors import MalmoiError

Text = str | tuple[str, str]


def check_text(text: object, place: str) -> str:
    """A text that any tokenizer takes."""
    if not isinstance(text, str):
        raise MalmoiError(f"{place} is {_name(text)}; a text is needed.")
    try:
        text.encode()
    except UnicodeEncodeError as mistake:
        half = ord(text[mistake.start])
        raise MalmoiError(
            f"{place}: character {mistake.start + 1} is half a surrogate pair (U+{half:04X}), which stands for "
            "no character; mend or remove it."
        ) from None
    return text


def take_several(values: Any, wanted: str = "a text or a list of texts is needed") -> list[Any]:
    """The members of a list, a generator, a column of a table. What has no order, a whole table and what is no list at
    all are refused."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray | Mapping | Set)
    if is_list and getattr(values, "ndim", 1) == 1:
        return list(values)
    raise MalmoiError(f"{wanted}, but this is {_name(values)}.")


def take_texts(texts: Any) -> tuple[list[str], bool]:
    """A text or several, and whether it was a single one."""
    if isinstance(texts, str):
        return [check_text(texts, "the text")], True
    return [check_text(text, f"text {number}") for number, text in enumerate(take_several(texts))], False


def take_texts_or_pairs(texts: Any) -> tuple[list[Text], bool]:
    """The same where each text may be a pair of two."""
    if isinstance(texts, str):
        return [check_text(texts, "the text")], True
    if isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts):
        raise MalmoiError("two texts or one pair? Give [first, second] for two texts, [(first, second)] for a pair.")
    return [_take_pair(text, f"text {number}") for number, text in enumerate(take_several(texts))], False


def _take_pair(text: object, place: str) -> Text:
    if not isinstance(text, tuple | list):
        return check_text(text, place)
    if len(text) != 2:
        raise MalmoiError(f"{place}: a pair is of two texts; this has {len(text)}.")
    return check_text(text[0], f"{place}, the first of the pair"), check_text(text[1], f"{place}, the second")


def _name(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
