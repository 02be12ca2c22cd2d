"""Output folders: one writer at a time, and there entirely or not at all."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from malmoi.errors import MalmoiError
from malmoi.writing import writing

LOCK = "lock"
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
    """Holds a folder, which it makes if need be, for one process. The system lets go of it when the process ends,
    however it ends. Whoever renames or removes a folder that is held does so before it lets go."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK

    def __enter__(self) -> FolderLock:
        while not self._try():
            pass
        return self

    def _try(self) -> bool:
        """Lock the file; false where meanwhile another has taken the folder away, or given it its name."""
        import fcntl

        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = self._path.open("a")
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise MalmoiError(
                f"{self._path.parent}: another malmoi is writing here; wait for it or choose another --out."
            ) from None
        try:
            if os.path.samestat(os.fstat(self._file.fileno()), self._path.stat()):
                return True
        except FileNotFoundError:
            pass
        self._file.close()
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def write_whole(path: Path, text: str) -> None:
    """Write a file that is either the old one or the new one, whatever happens in between."""
    beside = path.with_name(path.name + ".partial")
    with writing(path):
        beside.write_text(text, "utf-8")
    _sync(beside)
    beside.replace(path)


def publish_file(made: Path, out: Path) -> None:
    """Make a finished file durable and give it its name, in one step."""
    _sync(made)
    made.replace(out)
    _sync(out.parent)


def remove_held_folder(folder: Path) -> None:
    """Remove a folder that this process holds. The lock goes last: who finds the folder free finds it empty."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # another has begun to write here
        folder.rmdir()


def publish_folder(partial: Path, out: Path) -> None:
    """Make a finished folder durable and give it its name, in one step."""
    sync_folder(partial)
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
    """Have a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with writing(path):  # what was put off comes to light here
            os.fsync(handle)
    finally:
        os.close(handle)
