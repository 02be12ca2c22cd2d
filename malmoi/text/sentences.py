"""Document → sentences: fast rules by default, one a line where the lines are sentences already, or Kiwi for Korean.

The rules, in short. A line's end is a sentence's end, except in hard-wrapped prose. Within a line a sentence ends after
`. ! ? …` and closing quotes or brackets where white space follows and then something that can begin a sentence; after
`。！？` it needs no white space; after a Korean ending such as 습니다 or 해요 it needs no punctuation. No text is lost:
the sentences, joined, are the document up to white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from malmoi.errors import MalmoiError

# Counts up whenever the same document may be cut at other places: sentences made by two of them do not belong together.
SPLITTER_VERSION = 1

SplitterKind = Literal["rules", "lines", "kiwi"]
Splitter = Callable[[str], list[str]]

_KIWI_IS_MISSING = '--sentences kiwi needs kiwipiepy; install it with: pip install "malmoi[ko]"'

_LOWER = "a-zß-öø-ÿāăąćčďđēęěğīįıķļłńņňōőœřśşšţťūůűźżžά-ώа-џ"
_CLOSING = r"\"'”’»)\]}」』》〉】）］"

# After these the name or the sentence goes on: Mr. Smith, e.g. this one.
_NEVER_LAST = """
    Mr Ms Dr Mt Ft Lt vs cf Nr nr ca Mrs Gen Col Sgt Maj Cpl Cmdr Capt Prof Gov Sen Rep Rev Hon Pres Supt Messrs Mme
    Mlle Adm Brig approx resp e.g i.e viz
"""
# After these a number belongs to them: No. 5, Fig. 3, pp. 10.
_BEFORE_A_NUMBER = "No no Nos nos Fig fig Figs figs Eq eq Sec sec Ch ch Vol vol vols pp p art Art op Op ed Rule"
# With these a sentence ends only if the next word is one that sentences like to begin with.
_SOMETIMES_LAST = """
    etc al Inc Ltd Co Corp Jr Sr St Bros Ave Blvd Rd Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec a.m p.m
"""
_FIRST_WORDS = """
    The This That These Those There Then It Its He She We You They His Her Our Their My In On At As After Before But
    And So When While Although However If For From By To With Since What Who Why How Where One Some Many Most All
"""
# The endings that close a Korean sentence even without a full stop …
_KOREAN_ENDING = "(?:(?<=니다)|(?<=[까세네어아해예에군]요)|(?<=죠))"
# … unless they are quoted: 좋아요 라고 했다, "정말?" 하고 물었다.
_KOREAN_QUOTING = r"(?:(?:이?라[고는며면서니도]|하[고며는])|[고며만][\s,])"
# A pause, not an end, where the word before has no ending: 그게... 사실은.
_KOREAN_PAUSE = r"(?<=[가-힣][.…])(?<![다요까죠네지음함임][.…])(?:(?<=…)|(?=[.…]))"


def _after(listed: str) -> str:
    """A condition: one of the words and a full stop stand here. `re` wants one look-behind for each length."""
    words = listed.split()
    lengths = sorted({len(word) for word in words})
    groups = ("|".join(re.escape(word) for word in words if len(word) == length) for length in lengths)
    return "(?:" + "|".join(rf"(?<=\b(?:{group})\.)" for group in groups) + ")"


# The first character is one set, because the search for it is what makes this fast; what it was is asked afterwards.
_SENTENCE_END = re.compile(
    rf"""(
    [.!?…。！？｡다요죠]
    (?:
        (?<=[.!?…])(?<![.!?…][.!?…])                      # the first one of ?! or ...
        (?!{_KOREAN_PAUSE})
        [.!?…]*+[{_CLOSING}]*+
        (?=\s++[^\s{_LOWER},;:)\]}}%.!?…])                # what follows can begin a sentence
        (?!\s++{_KOREAN_QUOTING})
        (?:
            (?<!\.)
          | (?!{_after(_NEVER_LAST)})
            (?:
                (?!{_after(_SOMETIMES_LAST)})
                (?<!\.[A-Za-z]\.)                         # U.S.
                (?<![\s("“‘-][A-HJ-Z]\.)(?<!^[A-HJ-Z]\.)  # J. R. Smith; "I" is a word more often
              | (?=\s+(?:{"|".join(_FIRST_WORDS.split())})\b)
            )
            (?!{_after(_BEFORE_A_NUMBER)}\s+\d)
            (?!(?<=\d\.)\s+\d)                            # 2019. 3. 1.
            (?<!^\d\.)(?<!^\s\d\.)(?<!^\d\d\.)(?<!^[가-하]\.)   # a list's numbers, at the line's beginning …
            (?<![가-힣\d][.!?]\s\d\.)(?<![a-z]{{3}}[.!?]\s\d\.)  # … or after a sentence
        )
      |
        (?<=[。！？｡!?])(?<![。！？｡!?][。！？｡!?])       # the first one of a run, or a long one is searched from each
        (?:(?<=[。！？｡])|(?=[!?]*+[。！？｡]))
        [。！？｡!?]*+[{_CLOSING}]*+
        (?![。！？｡，、；：])
        (?!(?<=[」』”’])\s*(?:と|って))                    # 「はい。」と言った
      |
        {_KOREAN_ENDING}
        (?=\s++[^\s{_LOWER},;:)\]}}%.!?…~^ㄱ-ㅣ])
        (?!\s++{_KOREAN_QUOTING})
    )
    )""",
    re.VERBOSE | re.MULTILINE,
)

# Prose wrapped at a fixed width: a long line that does not end like a sentence, and a next one in lower case.
_WRAPPED_LINE = re.compile(rf"\n(?<=[^\n]{{50}}\n)(?<![.!?…:;]\n)(?<![.!?…:;][ \"'”’)]\n)(?=[{_LOWER}])")


def sentence_splitter(kind: SplitterKind = "rules") -> Splitter:
    """The function that cuts a document into sentences: stripped of outer white space, none of them empty."""
    if kind == "kiwi":
        return _kiwi_splitter()
    return {"rules": split_by_rules, "lines": split_lines}[kind]


def find_splitter_version(kind: SplitterKind) -> str:
    """What besides its kind decides where a splitter cuts."""
    if kind != "kiwi":
        return str(SPLITTER_VERSION)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{SPLITTER_VERSION}, kiwipiepy {version('kiwipiepy')}"
    except PackageNotFoundError:
        raise MalmoiError(_KIWI_IS_MISSING) from None


def split_lines(text: str) -> list[str]:
    """Every line is a sentence."""
    return [sentence for line in text.split("\n") if (sentence := line.strip())]


def split_by_rules(text: str) -> list[str]:
    """Cut where a sentence ends by punctuation, line ends and Korean endings."""
    parts = _SENTENCE_END.split(_WRAPPED_LINE.sub(" ", text))
    # Text and the end of its sentence, in turn: mark the cut behind each end.
    parts[1::2] = [end + "\n" for end in parts[1::2]]
    return split_lines("".join(parts))


def _kiwi_splitter() -> Splitter:
    try:
        from kiwipiepy import Kiwi
    except ImportError:
        raise MalmoiError(_KIWI_IS_MISSING) from None
    kiwi = Kiwi()

    def split(text: str) -> list[str]:
        sentences = []
        # Line by line, because Kiwi may see one sentence across two paragraphs.
        for line in split_lines(text):
            start = 0
            # Each sentence reaches up to where the next begins, so that nothing is lost in between.
            for following in kiwi.split_into_sents(line)[1:]:
                sentences.append(line[start : following.start].strip())
                start = following.start
            sentences.append(line[start:].strip())
        return [sentence for sentence in sentences if sentence]

    return split


# --- long documents -----------------------------------------------------------------------------------------------

# A line's end that no rule looks across: the next line does not go on with a word in lower case, nor with と or って.
_CLEAN_LINE_END = re.compile(rf"\n(?=[^\s{_LOWER}とっ])")
# A single mark or ending between words of letters: no number, initial, quotation or run of marks is near.
_CLEAN_SENTENCE_END = re.compile(r"[^\W\d_]{2}[.!?。！？다요죠] ?[^\W\d_]{2}")
# As far as the rules look from where they stand.
_SIGHT = 60
_WORD_CHARACTER = re.compile(r"\w")


def cut_document(text: str, kind: SplitterKind, characters: int) -> Iterator[str]:
    """Cut a document into parts of about so many characters. The sentences of the parts, each split by itself, are
    those of the whole; where that cannot be known, a part is longer."""
    begin = 0
    while len(text) - begin > characters:
        end = _find_cut(text, begin + characters, kind, characters)
        if end is None:
            break
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _find_cut(text: str, begin: int, kind: SplitterKind, characters: int) -> int | None:
    if kind != "rules":
        line_end = text.find("\n", begin)
        return None if line_end < 0 else line_end + 1
    found = _CLEAN_LINE_END.search(text, begin)
    if found is not None and found.end() - begin < characters:
        return found.end()
    limit = len(text) if found is None else found.end()
    sentence_end = _find_sentence_end(text, begin, limit)
    return sentence_end if sentence_end is not None or found is None else found.end()


def _find_sentence_end(text: str, begin: int, limit: int) -> int | None:
    """The first clean end of a sentence between two places."""
    # No mark of punctuation behind a letter or a digit belongs to an end that was found before it.
    first = _WORD_CHARACTER.search(text, begin, limit)
    if first is None:
        return None
    for found in _SENTENCE_END.finditer(text, first.end()):
        if found.end() >= limit:
            break
        near = text[max(0, found.start() - _SIGHT) : found.end() + _SIGHT]
        if "\n" not in near and len(found[0]) == 1 and _CLEAN_SENTENCE_END.match(text, found.start() - 2):
            return found.end()
    return None
