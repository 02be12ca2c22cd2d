"""Bytes → text: finds out a file's encoding in one pass, and says exactly where bytes make no sense.

The order of trust: a byte order mark; the pattern of NUL bytes that UTF-16 leaves; else the file is ASCII until the
first byte that is not, and the bytes that follow there decide between UTF-8 and CP949. CP949 can decode nearly
everything, so it is believed only where Korean comes out. The locale is never asked: the same file must mean the same
text on every machine.
"""

from __future__ import annotations

import codecs
import contextlib
import difflib
import encodings.aliases
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from malmoi.errors import MalmoiError
from malmoi.text.mojibake import looks_korean

_HEAD_BYTES = 1 << 16
_WINDOW_BYTES = 1 << 16
# UTF-32's little-endian mark begins with UTF-16's, so it is tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a zip archive or an Office document"),
    (b"%PDF-", "a PDF document"),
    (b"PAR1", "Parquet: give --format parquet"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office or HWP document"),
    *((b"\x80" + bytes([protocol]), "a pickle") for protocol in (2, 3, 4, 5)),
)
_ASCII = bytes(range(128))
# Control characters that text files do contain: tab, line ends, form feed, backspace and escape (terminal logs).
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_MOST_CONTROLS = 8  # every eighth byte: more than there are in tables with control characters between the columns
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")


def find_encoding(name: str) -> str:
    """The codec meant by what a user wrote: "auto", or a canonical name. EUC-KR becomes its superset CP949."""
    if name.lower() == "auto":
        return "auto"
    # Windows' own name for the code page, which Python does not know.
    wanted = "cp949" if name.lower() in ("windows-949", "cp-949") else name
    try:
        codec = codecs.lookup(wanted).name
        # An existing codec that turns bytes into no text (hex, zlib, rot13) raises here as an unknown one does.
        b"a".decode(codec, "ignore")
    except (LookupError, ValueError):
        names = encodings.aliases.aliases.items()
        known = [name for pair in names if not pair[1].endswith(("_codec", "rot_13")) for name in pair]
        near = difflib.get_close_matches(name.lower().replace("-", "_"), ["auto", *known], n=1)
        hint = f"did you mean {near[0].replace('_', '-')}?" if near else "try utf-8, cp949 or utf-16"
        raise MalmoiError(f"--encoding {name}: there is no such text encoding; {hint}") from None
    return "cp949" if codec == "euc_kr" else codec


class TextDecoder:
    """Turns a file's bytes into text; `encoding` says what was taken, once it is known. Lines end in `\\n`, unless
    they are to stay as they are."""

    def __init__(self, name: str, encoding: str = "auto", *, mend_lines: bool = True) -> None:
        self._name = name
        self._mend_lines = mend_lines
        self.encoding = None if encoding == "auto" else encoding
        self._decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")()
        # Lines end at \n, \r\n and \r, wherever the chunks were cut.
        self._line_ends = io.IncrementalNewlineDecoder(None, translate=True)
        self._offset = 0
        self._line = 1

    def decode(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The text of `chunks`, about as many characters a piece as a chunk holds."""
        chunks = iter(chunks)
        data, _ = _gather(chunks, b"", _HEAD_BYTES)
        self._refuse_known_binary(data)
        data = self._take_mark(data)
        if self.encoding is None:
            self.encoding = self._recognise_utf16(data[:_HEAD_BYTES])
        if self.encoding is None:
            self._refuse_controls(data[:_HEAD_BYTES])
        while self.encoding is None and data:
            if data.isascii():
                yield self._feed(data)
                data = next(chunks, b"")
                continue
            # With the character before it, which may be a letter that the first byte belongs to.
            start = max(0, len(data) - len(data.lstrip(_ASCII)) - 1)
            data, is_end = _gather(chunks, data, start + _WINDOW_BYTES)
            self.encoding = self._decide(data[start : start + _WINDOW_BYTES], is_end)
        self.encoding = self.encoding or "utf-8"
        self._decoder = codecs.getincrementaldecoder(self.encoding)()
        for chunk in chain([data], chunks):
            yield self._feed(chunk)
        yield self._feed(b"", final=True)

    def _refuse_known_binary(self, head: bytes) -> None:
        for magic, kind in _BINARY:
            if head.startswith(magic):
                raise self._binary(f"it begins like {kind}")

    def _refuse_controls(self, head: bytes) -> None:
        # NUL bytes are not counted: where text has got some into it, their line is named.
        if _controls(head.translate(None, b"\0")) * _MOST_CONTROLS > len(head):
            raise self._binary("it is full of control characters")

    def _binary(self, reason: str) -> MalmoiError:
        return MalmoiError(f"{self._name}: looks like a binary file, not text ({reason})")

    def _take_mark(self, data: bytes) -> bytes:
        for mark, encoding in _MARKS:
            # With an encoding given by hand the mark counts only where it is that encoding's own.
            if data.startswith(mark) and (self.encoding is None or encoding.startswith(self.encoding)):
                self.encoding = encoding
                self._offset = len(mark)
                return data[len(mark) :]
        if self.encoding in ("utf-16", "utf-32"):
            self.encoding += "-le"
        return data

    def _recognise_utf16(self, head: bytes) -> str | None:
        """UTF-16 without a mark: the NUL bytes are halves of spaces and line ends. Others mean it is no text."""
        nulls = head.count(0)
        if not nulls:
            return None
        # Can these bytes be other text that has got some NUL bytes into it?
        is_text_otherwise = _controls(head) == nulls and any(
            _valid_length(head, other, False) == len(head) for other in ("utf-8", "cp949")
        )
        ascii_share, encoding = max(
            (_ascii_share_in(head, encoding), encoding) for encoding in ("utf-16-be", "utf-16-le")
        )
        # English is nearly all ASCII; Korean and Chinese little of it, but then the bytes make no other sense.
        if ascii_share > 0.7 or (ascii_share > 0 and not is_text_otherwise):
            return encoding
        if not is_text_otherwise or nulls * 3 > len(head):
            raise self._binary("it is full of control characters")
        return None

    def _decide(self, window: bytes, is_end: bool) -> str:
        """UTF-8 or CP949, by what the bytes from the first non-ASCII one on are valid in, and whether it is Korean.

        What is neither is taken for UTF-8, because it then ends with a complaint about the first byte that is not.
        """
        utf8 = _valid_length(window, "utf-8", is_end)
        cp949 = _valid_length(window, "cp949", is_end)
        if max(utf8, cp949) < len(window) and _controls(window) * 20 > len(window):
            raise self._binary("it is full of control characters")
        # Where neither fits throughout, the one that goes further is the one with a flaw in it.
        return "cp949" if cp949 > utf8 and looks_korean(window[:cp949].decode("cp949", "ignore")) else "utf-8"

    def _feed(self, data: bytes, final: bool = False) -> str:
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as mistake:
            raise self._undecodable(mistake, self._offset - waiting) from None
        self._offset += len(data)
        # Without a single \n, it is \r that ends the lines, whatever is wanted.
        if self._mend_lines or (self._line == 1 and "\n" not in text):
            text = self._line_ends.decode(text, final)
        if "\0" in text:
            line = self._line + text.count("\n", 0, text.index("\0"))
            raise MalmoiError(
                f"{self._name}, line {line}: there is a NUL byte in the text; take it out (tr -d '\\000'), "
                f"or give --encoding if the file is not {self.encoding or 'utf-8'}"
            )
        self._line += text.count("\n")
        return text

    def _undecodable(self, mistake: UnicodeDecodeError, offset: int) -> MalmoiError:
        before = mistake.object[: mistake.start].decode(mistake.encoding, "ignore")
        line = self._line + self._line_ends.decode(before, False).count("\n")
        byte = mistake.object[mistake.start]
        return MalmoiError(
            f"{self._name}, line {line}: byte 0x{byte:02x} at offset {offset + mistake.start} is not valid "
            f"{self.encoding}, which the file was taken for; {_suggest_encoding(mistake.object, mistake.start)}"
        )


def _suggest_encoding(data: bytes, flaw: int) -> str:
    """What to do about a byte that is not valid: where its surroundings are Latin letters, how they read in CP1252."""
    nearby = data[max(0, flaw - 16) : flaw + 24]
    with contextlib.suppress(UnicodeDecodeError):
        text = nearby.decode("cp1252")
        if not _CONTROL_CHARACTERS.search(text) and len(text.encode("ascii", "ignore")) * 2 > len(text):
            return (
                f"read as cp1252 (Western European) it says “{' '.join(text.split())}”: "
                "if that is right give --encoding cp1252, else the file's own (cp949, …)"
            )
    return "mend it, or name the file's encoding with --encoding (cp949, cp1252, …)"


def _gather(chunks: Iterator[bytes], data: bytes, size: int) -> tuple[bytes, bool]:
    """`data` and as many chunks more as make up `size` bytes; and whether the file ended before that."""
    pieces, length = [data], len(data)
    while length < size:
        piece = next(chunks, b"")
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces), False


def _ascii_share_in(data: bytes, encoding: str) -> float:
    """How much of the text that `data` is in an encoding is ASCII; 0 if it is no text in that encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return 0.0
    if not text or _CONTROL_CHARACTERS.search(text):
        return 0.0
    # Binary data has many kinds of such characters; text may have one that is newer than Python's tables.
    different = set(text)
    if sum(map(_means_nothing, different)) * 20 > len(different):
        return 0.0
    return len(text.encode("ascii", "ignore")) / len(text)


def _means_nothing(character: str) -> bool:
    """Whether a character is unassigned, for private use or a C1 control."""
    return unicodedata.category(character) in ("Cn", "Co") or "\x80" <= character <= "\x9f"


def _controls(data: bytes) -> int:
    return len(data) - len(data.translate(None, _CONTROL_BYTES))


def _valid_length(data: bytes, encoding: str, is_end: bool) -> int:
    """How many bytes are valid; a character cut off by the end of `data` is no flaw unless the file ends there."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(data, is_end)
    except UnicodeDecodeError as mistake:
        return mistake.start
    return len(data)
