"""Output folders: one writer at a time, and there entirely or not at all."""

from __future__ import annotations

import ctypes
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from malmoi.errors import MalmoiError

_LOCK = "lock"
# Of Linux: paths are taken from the working directory, and two names change places.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@dataclass
class FileDigest:
    """What a file must be to be the one that was written."""

    bytes: int
    sha256: str


def digest_file(path: Path) -> FileDigest:
    with path.open("rb") as file:
        return FileDigest(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


class FolderLock:
    """Holds a folder for one process. The system lets go of it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOCK

    def __enter__(self) -> FolderLock:
        import fcntl

        self._file = self._path.open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise MalmoiError(
                f"{self._path.parent}: another malmoi is writing here; wait for it or choose another --out."
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def write_whole(path: Path, text: str) -> None:
    """Write a file that is either the old one or the new one, whatever happens in between."""
    beside = path.with_name(path.name + ".partial")
    beside.write_text(text, "utf-8")
    _sync(beside)
    beside.replace(path)


def publish_folder(partial: Path, out: Path) -> None:
    """Make a finished folder durable and give it its name, in one step."""
    (partial / _LOCK).unlink(missing_ok=True)
    for path in [*partial.rglob("*"), partial]:
        _sync(path)
    if out.is_dir():
        out.rmdir()  # an empty folder the user made; rename wants the name free
    partial.rename(out)
    _sync(out.parent)


def sync_folder(folder: Path) -> None:
    """Make all that a folder holds durable."""
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def exchange_folders(one: Path, other: Path) -> bool:
    """Let two folders change places in one step, durably; false where the system or its disk cannot."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # another system than Linux
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) != 0:
        return False
    _sync(one.parent)
    _sync(other.parent)
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
