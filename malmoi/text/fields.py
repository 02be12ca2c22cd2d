"""The fields or columns of a file: which of them holds what is looked for, and what to say where nobody can tell."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from malmoi.errors import MalmoiError

# Usual names, in lower case: the first group of which one is there decides, and if two of it are, nobody can tell.
Names = tuple[tuple[str, ...], ...]
TEXT_NAMES: Names = (
    ("text",),
    ("sentence", "document", "review", "content", "comment", "utterance"),
)
# With one of these in it a first line is a header.
_HEADER_NAMES = frozenset(
    """
    id guid idx index text sentence document review content comment utterance title headline question query
    label labels gold_label class category target topic topic_idx sentiment intent emotion score similarity rating
    sentence1 sentence2 premise hypothesis text1 text2 text_a text_b question1 question2 anchor positive pair
    context passage paragraph answer answers answer_start words tokens tags ner_tags prompt choices
    """.split()
)
_LONGEST_NAME = 40
_MOST_WORDS_OF_A_NAME = 3


def require_field(wanted: str, names: Sequence[str], place: str, what: str) -> str:
    """`wanted`, if it is one of the names."""
    if wanted in names:
        return wanted
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise MalmoiError(f"{place}: there is no {what} {wanted!r} among {list_names(names)}{hint}")


def list_names(names: Sequence[str]) -> str:
    """The names with commas between them, the first twenty at the most."""
    shown = ", ".join(names[:20]) if names else "(none)"
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


class Fields:
    """The names of one file's fields, where they stand, and whether a header says them or they are numbers."""

    def __init__(self, names: Sequence[str], place: str, what: str, has_header: bool) -> None:
        self.names = list(names)
        self._place = place
        self.what = what
        self._is_header = what == "column" and has_header
        self._is_numbered = what == "column" and not has_header

    def require(self, option: str, name: str) -> str:
        """The field that the user names by `option`."""
        if name not in self.names:
            self._refuse_data_as_header()
        try:
            return require_field(name, self.names, self._place, self.what)
        except MalmoiError as mistake:
            hint = (
                "; give --no-header if the file has none" if name.isdecimal() and self._is_header else f" (--{option})"
            )
            raise MalmoiError(f"{mistake}{hint}") from None

    def guess(self, usual: Names) -> list[str]:
        """The fields with a usual name; several of them are equally likely."""
        for group in usual:
            if found := [name for name in self.names if name.lower() in group]:
                return found
        return []

    def find(self, option: str, given: str | None, usual: Names, meaning: str) -> str:
        """The field that is given, else the one with a usual name."""
        if given is not None:
            return self.require(option, given)
        found = self.guess(usual)
        if len(found) == 1:
            return found[0]
        self._refuse_data_as_header()
        listed = list_names(self.names)
        if found:
            raise MalmoiError(
                f"{self._place}: both {found[0]!r} and {found[1]!r} may hold {meaning}; "
                f"give --{option} with one of {listed}"
            )
        number = " by its number" if self._is_numbered else ""
        raise MalmoiError(
            f"{self._place}: which {self.what} holds {meaning}? Give --{option}{number} with one of {listed}"
            f"{self._suggest(option, usual)}"
        )

    def _suggest(self, option: str, usual: Names) -> str:
        """A hint at a field that is nearly called as usual, such as "lable"."""
        lowered = {name.lower(): name for name in self.names}
        for name in (name for group in usual for name in group):
            if near := difflib.get_close_matches(name, lowered, n=1, cutoff=0.75):
                return f"; did you mean --{option} {lowered[near[0]]}?"
        return ""

    def _refuse_data_as_header(self) -> None:
        """Where no column was found: a first line that cannot be a header is the first example."""
        if self._is_header and looks_like_data(self.names):
            shown = " | ".join(name if len(name) <= 24 else name[:24] + "…" for name in self.names[:4])
            raise MalmoiError(
                f"{self._place}: this line looks like data, not like a header ({shown}); "
                "give --no-header and the columns by number, such as --text 1 --label 0"
            )


def looks_like_header(names: Sequence[str]) -> bool:
    """Whether a first line names columns: short names, and a usual one among them."""
    return not looks_like_data(names) and any(name.strip().lower() in _HEADER_NAMES for name in names)


def looks_like_data(names: Sequence[str]) -> bool:
    """Whether a first line can hardly name columns."""
    # The first name is empty where pandas has written its index.
    return any(
        (place and not name.strip())
        or len(name) > _LONGEST_NAME
        or len(name.split()) > _MOST_WORDS_OF_A_NAME
        or name.rstrip().endswith((".", "!", "…", "。", "！", "？"))
        or _is_number(name)
        for place, name in enumerate(names)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
