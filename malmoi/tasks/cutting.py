"""Cutting texts into words to tag: as the words were cut that a model has learned from.

Some data has its words cut at spaces, some gives each character a tag. Most have punctuation taken off the words, but
each in its own way: "U.S.", "Jean-Paul" and "3.5" may be one word or several, and "Germany's" ends before its
apostrophe or does not. So it is counted in the examples what becomes of each mark, and the majority decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

Form = Literal["characters", "spaces", "punctuation"]
Span = tuple[int, int]

_OPENING, _CLOSING = "([{«“‘「『《〈", ")]}»”’」』》〉"
_PAIRS = dict(zip(_CLOSING, _OPENING, strict=True))
_QUOTES = "\"'"
_STOPS = ".,;:!?…。、，；：！？"
_DOTTED = re.compile(r"(?:[^\W\d_]\.){2,}")
_INITIAL = re.compile(r"[A-ZÀ-ÖØ-Þ]\.")
_APOSTROPHES = "'’"
_JOINERS = "\u200c\u200d"
# So much of the words have to be single characters where characters are the words.
_CHARACTERS_SHARE = 0.9
# What a folder may remember of single words.
_MOST_WORDS = 200


@dataclass(frozen=True)
class WordCut:
    """How words are cut. All but `form` says what is not taken off the words where punctuation is: marks that stay
    between letters and between digits, before a word and after it; and single words of a kind."""

    form: Form
    inside: str = ""
    numbers: str = ""
    before: str = ""
    after: str = ""
    dotted: bool = False  # U.S.
    initials: bool = False  # J. in "J. Smith"
    abbreviations: tuple[str, ...] = ()  # Corp.
    clitics: tuple[str, ...] = ()  # the 's of "Germany's", a word of its own

    def find_words(self, text: str) -> list[Span]:
        return [found.span() for found in self._pattern.finditer(text)]

    def trim(self, text: str, span: Span) -> Span:
        """An entity without the punctuation that is only there because words end at spaces."""
        return _trim(text, span) if self.form == "spaces" else span

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.form != "punctuation":
            return re.compile(r"(?s:.)" if self.form == "characters" else r"\S+")
        letter = f"[{_letters()}]"
        clitics = _any_of(self.clitics, ignore_case=True) + f"(?!{letter})"
        stays = (
            f"(?<!\\d){_class(self.inside)}(?={letter})|{_class(self.inside)}(?={letter})(?!\\d)"
            f"|(?<=\\d){_class(self.numbers)}(?=\\d)"
        )
        shortened = [f"{_any_of(self.abbreviations)}(?!{letter})"]
        if self.dotted:
            shortened.append(f"{_DOTTED.pattern}(?!{letter})")
        if self.initials:
            shortened.append(rf"{_INITIAL.pattern}(?=\s+[^\W\d_])")
        part = f"(?:(?<!{letter})(?:{'|'.join(shortened)})|{letter}+)"
        word = f"(?:(?<!{letter}){_class(self.before)})?{part}(?:(?!{clitics})(?:{stays}){part})*"
        word += f"(?:{_class(self.after)}+(?!{letter}))?"
        return re.compile(rf"(?<={letter}){clitics}|{word}|[^\s{_letters()}]")


# How most data is cut that people share; for models whose folder does not say it.
USUAL = WordCut("punctuation", inside="-'&/_.", numbers=".,:/-", dotted=True, initials=True, clitics=("'s",))


def read_cut(settings: Mapping[str, Any]) -> WordCut:
    """The way that a folder remembers; a folder is a stranger's, so what is no such thing is passed over."""
    given_form, kept = settings.get("words"), settings.get("kept")
    form: Form | None = next((known for known in get_args(Form) if known == given_form), None)
    if form is None:
        return USUAL
    given = dict(kept) if isinstance(kept, dict) else {}
    fields: dict[str, Any] = {}
    for name, usual in asdict(WordCut(form)).items():
        value = given.get(name)
        if isinstance(usual, tuple):
            value = tuple(str(one) for one in value[:_MOST_WORDS]) if isinstance(value, list) else ()
        if name != "form" and isinstance(value, type(usual)):
            fields[name] = value
    return WordCut(form, **fields)


def write_cut(cut: WordCut) -> dict[str, Any]:
    """What a folder has to remember, as `read_cut` reads it."""
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(cut).items() if value}
    return {"words": kept.pop("form"), **({"kept": kept} if kept else {})}


def learn_cut(sentences: Iterable[Sequence[str]]) -> WordCut:
    """How the words of some sentences were cut out of their text, as far as the words themselves tell."""
    counts = _Counts()
    for words in sentences:
        counts.add([word.replace("’", "'") for word in words])
    return counts.judge()


class _Counts:
    """What became of each mark in the words of some data."""

    def __init__(self) -> None:
        self._words = self._characters = 0
        self._attached = self._alone = 0  # punctuation of sentences: at a word, and as a word of its own
        self._marks: dict[str, Counter[str]] = {
            name: Counter() for name in ("inside", "apart", "numbers", "numbers apart", "before", "after", "alone")
        }
        self._dotted, self._initials = Counter[bool](), Counter[bool]()
        self._stopped, self._unstopped, self._clitics = Counter[str](), Counter[str](), Counter[str]()

    def add(self, words: Sequence[str]) -> None:
        self._words += len(words)
        self._characters += sum(len(word) == 1 for word in words)
        for place, word in enumerate(words):
            if any(map(str.isalnum, word)):
                self._add_word(word, is_last=place == len(words) - 1)
            elif word.strip(_STOPS + _OPENING + _CLOSING + _QUOTES) == "":
                self._alone += 1
        for before, after in pairwise(words):
            if after == ".":
                self._unstopped[before] += 1
                self._initials[False] += _INITIAL.fullmatch(before + after) is not None
                self._dotted[False] += _DOTTED.fullmatch(before + after) is not None
        for before, mark, after in zip(words, words[1:], words[2:], strict=False):
            if len(mark) == 1 and not mark.isalnum() and before[-1:].isalnum() and after[:1].isalnum():
                self._marks["numbers apart" if _are_digits(before, after) else "apart"][mark] += 1
        for word in words:
            if len(word) == 1 and not word.isalnum():
                self._marks["alone"][word] += 1

    def _add_word(self, word: str, *, is_last: bool) -> None:
        if _DOTTED.fullmatch(word):
            self._dotted[True] += 1
            return
        if _INITIAL.fullmatch(word):
            self._initials[True] += not is_last
            return
        if word[0] == "'" and word[1:].isalpha():
            self._clitics[word.lower()] += 1
            return
        self._attached += word[0] in _OPENING + _QUOTES or word[-1] in _STOPS + _CLOSING + _QUOTES
        if word[-1] == "." and not is_last:  # there the sentence ends
            self._stopped[word] += 1
        if not word[0].isalnum() and word[1].isalnum():
            self._marks["before"][word[0]] += 1
        if not word[-1].isalnum() and word[-2].isalnum():
            self._marks["after"][word[-1]] += 1
        for before, mark, after in zip(word, word[1:], word[2:], strict=False):
            if _is_mark(mark) and before.isalnum() and after.isalnum():
                self._marks["numbers" if _are_digits(before, after) else "inside"][mark] += 1

    def judge(self) -> WordCut:
        if self._characters >= _CHARACTERS_SHARE * self._words:
            return WordCut("characters")
        if self._attached > self._alone:
            return WordCut("spaces")
        inside = self._more("inside", "apart")
        # Most commas that stand alone between digits had a space behind them ("in 2005, 42 of them").
        numbers = self._more("numbers", "numbers apart", factor=10)
        # What was never seen between digits is treated there as between letters.
        seen = self._marks["numbers"] | self._marks["numbers apart"]
        stopped = [word for word, count in self._stopped.most_common() if count > self._unstopped[word[:-1]]]
        return WordCut(
            "punctuation",
            inside=inside,
            numbers="".join(sorted({*numbers, *(mark for mark in inside if mark not in seen)})),
            before=self._more("before", "alone"),
            after=self._more("after", "alone"),
            dotted=self._dotted[True] > self._dotted[False],
            initials=self._initials[True] > self._initials[False],
            abbreviations=tuple(stopped[:_MOST_WORDS]),
            clitics=tuple(word for word, _ in self._clitics.most_common(_MOST_WORDS)),
        )

    def _more(self, kept: str, taken: str, factor: int = 1) -> str:
        """The marks that stay more often than they are taken off, or at least not so many times less often."""
        marks = self._marks[kept].items()
        return "".join(sorted(mark for mark, count in marks if factor * count > self._marks[taken][mark]))


def _trim(text: str, span: Span) -> Span:
    start, end = span
    while start < end - 1:
        inner = text[start:end]
        if _ends_outside(inner):
            end -= 1
        elif _begins_outside(inner):
            start += 1
        else:
            break
    return start, end


def _ends_outside(text: str) -> bool:
    last = text[-1]
    if last in _QUOTES:
        return text.count(last) % 2 == 1
    if last in _PAIRS:
        return _PAIRS[last] not in text
    return last in _STOPS and not re.search(rf"(?<!\w){_DOTTED.pattern}$", text)


def _begins_outside(text: str) -> bool:
    first = text[0]
    if first in _QUOTES:
        return text.count(first) % 2 == 1
    return first in _OPENING and not any(_PAIRS.get(mark) == first for mark in text)


def _are_digits(before: str, after: str) -> bool:
    return before[-1].isdigit() and after[0].isdigit()


def _is_mark(character: str) -> bool:
    """Whether a character is punctuation or a symbol: not a letter, a digit, a space or part of a letter."""
    return unicodedata.category(character)[0] in "PS" and character != "_"


def _class(marks: str) -> str:
    """A pattern for one of these characters, in all their shapes."""
    marks += "".join(mark for mark in _APOSTROPHES if "'" in marks)
    return f"[{re.escape(marks)}]" if marks else "(?!)"


def _any_of(words: Sequence[str], *, ignore_case: bool = False) -> str:
    """A pattern for one of these words, the longest that fits."""
    if not words:
        return "(?!)"
    escaped = [re.escape(word).replace("'", f"[{_APOSTROPHES}]") for word in sorted(words, key=len, reverse=True)]
    return f"(?{'i' if ignore_case else ''}:{'|'.join(escaped)})"


@cache
def _letters() -> str:
    """What words are made of, for a pattern's [ ]: \\w, and the vowel signs and joiners that belong to the letters of
    Hindi, Thai and others, which \\w leaves out."""
    ranges: list[list[int]] = []
    for number in range(0x300, 0x10000):
        if unicodedata.category(chr(number)) in ("Mn", "Mc", "Me") or chr(number) in _JOINERS:
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
    return r"\w" + "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
