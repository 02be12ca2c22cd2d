"""Text that was decoded with the wrong encoding at some time in its life, recognised by the traces that leaves.

And bytes that CP949 can decode, but that are no Korean: nearly any two bytes above 7F are some syllable.
"""

from __future__ import annotations

import re
from functools import cache

# What the bytes 80–BF look like when they are read as Latin-1 or as CP1252.
_CONTINUATION = "\x80-\xbf" + "".join(bytes([byte]).decode("cp1252", "ignore") for byte in range(0x80, 0xA0))

_PATTERNS = {
    "UTF-8 read as Latin-1 or CP1252": re.compile(
        f"[ÂÃ][{_CONTINUATION}]|â[\x80€][{_CONTINUATION}]|ð[\x9fŸ][{_CONTINUATION}]"
        # One such pair can be French or German; two in a row are Korean, Japanese or Chinese bytes.
        f"|(?:[ã-í][{_CONTINUATION}]{{1,2}}){{2,}}"
    ),
    "CP949 read as Latin-1": re.compile("(?=[¡-þ]{0,3}[À-ÖØ-öø-þ])(?:[°-È][¡-þ]){2}"),
    "UTF-8 read as CP949": re.compile("占쏙옙|占싼|占쎈|�덈떎|�덈뒗"),
    "characters already lost (U+FFFD)": re.compile("\ufffd"),
}
# Ordinary Korean hardly ever leaves KS X 1001's syllables; UTF-8 read as CP949 does so all the time.
_RARE_SYLLABLES_KIND = "UTF-8 read as CP949"
_FEWEST_HANGUL = 8
_FEWEST_RARE = 3  # different ones: slang likes to repeat its own
_RARE_SHARE = 0.2
_EXCERPT_CHARACTERS = 40
# The 200 that make up 82 % of running Korean (film reviews and petitions); KS X 1001 has 2,350.
_FREQUENT_SYLLABLES = frozenset(
    "이다는고하지에가니을의도한기아로화서영어사은나들인시보리만게해라를대정있자요그수으주무습재면없부제전"
    "장원상데일스여마미과내적말진국것거되생안었우음입연점까야감소동구공오네간건저위신조성했드용와모작할분"
    "개중않비치유관합실민너세문금좋더려본당러경같각히명년런운교행때청회최물배계짜임단법평던선못았며처발터"
    "봤심현반남업바차학직불람였래통체받역겠잘방결력함알등된밌토많후매난루르설노피출속산트살랑느식준두번든"
)
_FREQUENT_SHARE = 0.25
_FEW_SYLLABLES = 16
_SYLLABLE = re.compile("[가-힣㐀-鿿豈-\ufaff]")
_JAMO = re.compile("[ㄱ-ㅣ]")
# A syllable within a Latin word: in CP1252 "It’s" is the bytes 49 74 92 73, of which CP949 makes "It뭩".
_WITHIN_A_WORD = re.compile("[A-Za-z][가-힣㐀-鿿豈-\ufaff]|[가-힣㐀-鿿豈-\ufaff][A-Za-z]")


def looks_korean(text: str) -> bool:
    """Whether a text that was decoded as CP949 is Korean, and not another encoding's bytes in disguise."""
    syllables = _SYLLABLE.findall(text)
    if not syllables:
        return _JAMO.search(text) is not None
    frequent = sum(map(_FREQUENT_SYLLABLES.__contains__, syllables))
    if len(set(syllables)) == 1:
        return frequent > 0 and not _WITHIN_A_WORD.search(text)
    if frequent >= _FREQUENT_SHARE * len(syllables):
        return True
    # A few names or words of slang: ordinary syllables all the same.
    is_short = len(syllables) <= _FEW_SYLLABLES
    return is_short and common_syllables().issuperset(syllables) and not _WITHIN_A_WORD.search(text)


@cache
def common_syllables() -> frozenset[str]:
    """The 2,350 Hangul syllables of KS X 1001, with which practically all Korean is written."""
    # Python writes the other syllables in EUC-KR too, but as eight bytes of jamo.
    return frozenset(chr(code) for code in range(0xAC00, 0xD7A4) if len(chr(code).encode("euc_kr")) == 2)


@cache
def _rare_syllable() -> re.Pattern[str]:
    return re.compile(
        "[" + "".join(chr(code) for code in range(0xAC00, 0xD7A4) if chr(code) not in common_syllables()) + "]"
    )


_HANGUL = re.compile("[가-힣]")


def find_mojibake(text: str) -> dict[str, str]:
    """The kinds of damage suspected in a text, each with the passage that gave it away."""
    if text.isascii():
        return {}
    found = {
        kind: _excerpt(text, match.start()) for kind, pattern in _PATTERNS.items() if (match := pattern.search(text))
    }
    if _RARE_SYLLABLES_KIND not in found and (rare := _rare_syllable().search(text)):
        all_rare = _rare_syllable().findall(text)
        hangul_count = len(_HANGUL.findall(text))
        is_frequent = len(all_rare) > _RARE_SHARE * hangul_count
        if is_frequent and hangul_count >= _FEWEST_HANGUL and len(set(all_rare)) >= _FEWEST_RARE:
            found[_RARE_SYLLABLES_KIND] = _excerpt(text, rare.start())
    return found


def _excerpt(text: str, position: int) -> str:
    start = max(0, position - _EXCERPT_CHARACTERS // 4)
    return " ".join(text[start : start + _EXCERPT_CHARACTERS].split())
