"""Characters by script, counted with numpy over code points: a table lookup a character."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCRIPTS = (
    "Latin",
    "Hangul syllables",
    "Hangul jamo",
    "Han",
    "Kana",
    "Cyrillic",
    "Greek",
    "Arabic",
    "Hebrew",
    "Thai",
    "Devanagari",
    "digits",
    "punctuation and symbols",
    "white space",
    "control",
    "private use",
    "other",
)
# Where the letters and marks of each script lie, both ends included.
_BLOCKS = {
    "Latin": (
        *((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xBA, 0xBA), (0xC0, 0x2AF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F)),
        *((0xA720, 0xA7FF), (0xFB00, 0xFB06), (0xFF21, 0xFF5A)),
    ),
    "Hangul syllables": ((0xAC00, 0xD7A3),),
    "Hangul jamo": ((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0xFFA0, 0xFFDC)),
    "Han": (
        *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)),
        (0x20000, 0x3FFFD),
    ),
    "Kana": ((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)),
    "Cyrillic": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFE)),
    "Hebrew": ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    "Thai": ((0xE00, 0xE7F),),
    "Devanagari": ((0x900, 0x97F), (0xA8E0, 0xA8FF)),
}
# Beyond the first two planes there are only Han, private use and next to nothing: no table is needed for them.
_TABLE_SIZE = 0x20000
_PRIVATE_PLANES = 0xF0000
_BUFFERED_CHARACTERS = 1 << 20


@cache
def _table() -> NDArray[np.uint8]:
    import numpy as np

    table = np.full(_TABLE_SIZE, SCRIPTS.index("other"), dtype=np.uint8)
    for script, blocks in _BLOCKS.items():
        for first, last in blocks:
            table[first : last + 1] = SCRIPTS.index(script)
    # A block also holds digits, punctuation and gaps, which the character's category tells.
    of_category = {"N": "digits", "P": "punctuation and symbols", "S": "punctuation and symbols", "C": "control"}
    for code in range(_TABLE_SIZE):
        category = unicodedata.category(chr(code))
        if chr(code).isspace():
            script = "white space"
        elif category == "Co":
            script = "private use"
        elif category in ("Cn", "Cs"):
            script = "other"
        elif category[0] in of_category:
            script = of_category[category[0]]
        else:
            continue
        table[code] = SCRIPTS.index(script)
    return table


class ScriptCounter:
    """Counts characters by script. Texts are gathered first, because numpy is slow at short ones."""

    def __init__(self) -> None:
        import numpy as np

        self._counts = np.zeros(len(SCRIPTS), dtype=np.int64)
        self._texts: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        """Count the characters of one more text."""
        self._texts.append(text)
        self._length += len(text)
        if self._length >= _BUFFERED_CHARACTERS:
            self._count()

    def _count(self) -> None:
        import numpy as np

        codes = np.frombuffer("".join(self._texts).encode("utf-32-le"), dtype=np.uint32)
        self._texts, self._length = [], 0
        beyond = codes[codes >= _TABLE_SIZE]
        scripts = _table()[codes[codes < _TABLE_SIZE] if len(beyond) else codes]
        self._counts += np.bincount(scripts, minlength=len(SCRIPTS))
        private = int((beyond >= _PRIVATE_PLANES).sum())
        self._counts[SCRIPTS.index("private use")] += private
        self._counts[SCRIPTS.index("Han")] += len(beyond) - private

    def counts(self) -> dict[str, int]:
        """How many characters of each script there were; those that did not occur are left out."""
        self._count()
        return {script: int(count) for script, count in zip(SCRIPTS, self._counts, strict=True) if count}
