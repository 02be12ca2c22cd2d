"""Files as they lie on disk: which ones a path stands for, and their bytes, decompressed, a chunk at a time."""

from __future__ import annotations

import dataclasses
import io
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from malmoi.errors import MalmoiError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 1 << 20
STANDARD_INPUT = frozenset({"-", "/dev/stdin"})
FORMAT_OF_ENDING = {
    ".txt": "txt",
    ".text": "txt",
    ".md": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_COMPRESSION_OF_ENDING = {".gz": "gzip", ".zst": "zstd"}
# The first bytes say more than the name: a pipe has no name, and a .txt may well be compressed.
_COMPRESSION_OF_MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_MAGIC_BYTES = max(map(len, _COMPRESSION_OF_MAGIC))


@dataclass(frozen=True)
class Source:
    """A file to be read. `size` and `changed_ns` are None where nobody can know them: standard input, other pipes."""

    path: Path
    size: int | None
    changed_ns: int | None = None

    @property
    def is_standard_input(self) -> bool:
        return str(self.path) in STANDARD_INPUT

    @property
    def name(self) -> str:
        """What to call the file in a message."""
        return "standard input" if self.is_standard_input else str(self.path)

    def identify(self) -> list[str | int | None]:
        """What tells this file, as it is now, from any other."""
        return [self.name, self.size, self.changed_ns]

    @property
    def ending(self) -> str:
        """The file's ending in lower case, without that of a compression: ".jsonl" for corpus.JSONL.gz."""
        path = self.path
        if path.suffix.lower() in _COMPRESSION_OF_ENDING:
            path = path.with_suffix("")
        return path.suffix.lower()


@dataclass
class SourceReport:
    """What was taken for a file, and what came out of it; filled in while the file is read."""

    path: str
    format: str
    compression: str | None = None
    encoding: str | None = None
    rule: str | None = None  # how plain text was cut into documents: file, blank, line, wiki
    field: str | None = None
    delimiter: str | None = None  # of a table's columns
    header: bool = True  # whether a table has one
    documents: int = 0
    empty: int = 0  # records left out because their text is only white space
    nulls: int = 0  # those among them that have a null instead of a text
    size: int | None = None
    # What the numbers of a column stand for, where the file says so.
    value_names: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def find_sources(paths: Sequence[str | Path]) -> list[Source]:
    """The files that `paths` stand for, in the order given, a folder's files sorted; each file once."""
    if not paths:
        raise MalmoiError("no input was given: name at least one file or folder, or - for standard input")
    found: dict[Path, Source] = {}
    for path in map(Path, paths):
        for source in _files_of(path):
            key = source.path if source.is_standard_input else source.path.resolve()
            found.setdefault(key, source)
    return list(found.values())


def _files_of(path: Path) -> Iterator[Source]:
    if str(path) in STANDARD_INPUT:
        yield Source(path, None)
    elif path.is_dir():
        files = list(_text_files_below(path))
        if not files:
            endings = " ".join(FORMAT_OF_ENDING)
            raise MalmoiError(f"{path}: this folder holds no text (looked for {endings}, each also with .gz or .zst)")
        yield from files
    else:
        yield _source(path)


def _text_files_below(folder: Path) -> Iterator[Source]:
    for parent, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and Source(path, None).ending in FORMAT_OF_ENDING:
                yield _source(path)


def _refuse_folder(mistake: OSError) -> None:
    raise MalmoiError(f"{mistake.filename}: cannot be read: {mistake.strerror}")


def _source(path: Path) -> Source:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise MalmoiError(f"{path}: there is no such file or folder") from None
    except (OSError, ValueError) as mistake:
        raise MalmoiError(f"{path}: cannot be read: {getattr(mistake, 'strerror', None) or mistake}") from None
    return Source(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else Source(path, None)


class _Input(io.RawIOBase):
    """A raw file whose first bytes can be looked at, and that tells how many bytes have been taken from it."""

    def __init__(self, raw: IO[bytes], on_bytes: Callable[[int], None]) -> None:
        self._raw = raw
        self._on_bytes = on_bytes
        self.magic = b""
        while len(self.magic) < _MAGIC_BYTES and (piece := raw.read(_MAGIC_BYTES - len(self.magic))):
            self.magic += piece
        self._unread = self.magic

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        if self._unread:
            count = min(len(view), len(self._unread))
            view[:count] = self._unread[:count]
            self._unread = self._unread[count:]
        else:
            count = self._raw.readinto(view)  # type: ignore[attr-defined]
        self._on_bytes(count)
        return count


def read_bytes(source: Source, report: SourceReport, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    """The file's content, decompressed, in chunks of at most `CHUNK_BYTES`.

    `on_bytes` is told of every piece taken from the disk, so compressed bytes count as they lie there.
    """
    try:
        if source.is_standard_input:
            _rewind_standard_input()
        # Unbuffered, because the chunks are large already and a pipe should be passed on as it comes.
        with open(0 if source.is_standard_input else source.path, "rb", 0, closefd=not source.is_standard_input) as raw:
            file = _Input(raw, on_bytes)
            report.compression = _compression(source, file.magic)
            if report.compression == "gzip":
                yield from _gunzip(source, file)
            elif report.compression == "zstd":
                yield from _unzstd(source, file)
            else:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
    except OSError as mistake:
        raise MalmoiError(f"{source.name}: cannot be read: {mistake.strerror or mistake}") from None


def keep_standard_input(paths: Sequence[str | Path]) -> None:
    """Where standard input is among `paths`, let it be read as often as any file, though it be a pipe.

    For what reads its text more than once; the pipe's content goes to a temporary file, which becomes standard input.
    """
    if not any(str(path) in STANDARD_INPUT for path in paths) or _beginning_of_standard_input() is not None:
        return
    with tempfile.TemporaryFile() as file, open(0, "rb", closefd=False) as pipe:
        shutil.copyfileobj(pipe, file, CHUNK_BYTES)
        file.flush()
        os.dup2(file.fileno(), 0)
    os.lseek(0, 0, os.SEEK_SET)
    _beginning_of_standard_input.cache_clear()


@cache
def _beginning_of_standard_input() -> int | None:
    """Where standard input stood when it was first asked for; None where it is a pipe, which cannot go back."""
    try:
        return os.lseek(0, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(0).st_mode) else None
    except OSError:
        return None


def _rewind_standard_input() -> None:
    beginning = _beginning_of_standard_input()
    if beginning is not None:
        os.lseek(0, beginning, os.SEEK_SET)
    elif _taken:
        raise MalmoiError("standard input can be read only once; put the text in a file first")
    else:
        _taken.append(True)


# Whether a pipe on standard input has been read, by whomever: there is one for the whole process.
_taken: list[bool] = []


def _compression(source: Source, magic: bytes) -> str | None:
    for start, compression in _COMPRESSION_OF_MAGIC.items():
        if magic.startswith(start):
            return compression
    promised = _COMPRESSION_OF_ENDING.get(source.path.suffix.lower())
    if promised and magic:
        raise MalmoiError(f"{source.name}: this is not a {promised} file in spite of its name; rename it")
    return None


def _gunzip(source: Source, file: _Input) -> Iterator[bytes]:
    # A gzip file may be several joined together (cat a.gz b.gz), hence a new decompressor after each end.
    decompressor = None
    try:
        while compressed := file.read(CHUNK_BYTES):
            while compressed:
                if decompressor is None:
                    # Some tools fill up the end of the file with zeros.
                    if not compressed.strip(b"\0"):
                        break
                    decompressor = zlib.decompressobj(wbits=31)
                if chunk := decompressor.decompress(compressed, CHUNK_BYTES):
                    yield chunk
                compressed = decompressor.unconsumed_tail
                if decompressor.eof:
                    compressed = decompressor.unused_data
                    decompressor = None
            while decompressor and (chunk := decompressor.decompress(b"", CHUNK_BYTES)):
                yield chunk
    except zlib.error as mistake:
        raise _damaged(source, "gzip", str(mistake)) from None
    if decompressor is not None:
        raise _damaged(source, "gzip", "it ends too early")


def _unzstd(source: Source, file: _Input) -> Iterator[bytes]:
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except (pyarrow.ArrowException, OSError) as mistake:
        raise _damaged(source, "zstd", str(mistake)) from None


def _damaged(source: Source, compression: str, reason: str) -> MalmoiError:
    return MalmoiError(f"{source.name}: this {compression} file is damaged or cut short ({reason}); fetch it anew")
