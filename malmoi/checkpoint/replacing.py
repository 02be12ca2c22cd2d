"""A folder in the place of another. Whenever a process dies, a whole one is there: the old or the new.

The new one grows as `.NAME.partial` beside its place, and the two change places in one step. Where the system has no
such step, the old one is `.NAME.old` for the time of two renames; if the process dies just then, whoever comes next
puts it back. One process at a time works beside a folder: the one that holds `.NAME.lock`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from malmoi.data.folders import exchange_folders, publish_folder, sync_folder


@contextmanager
def fill_folder(out: Path) -> Iterator[Path]:
    """An empty folder to be filled, which then takes the place of `out`; if anything raises, `out` stays as it was."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(out, "partial")
    with _hold(out):
        _put_back(out)
        shutil.rmtree(partial, ignore_errors=True)  # left by a process that died
        try:
            partial.mkdir()
            yield partial
            if _is_taken(out):
                _replace(partial, out)
            else:
                publish_folder(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def restore_folder(out: Path) -> None:
    """Put a folder back that was on its way to be replaced when the process died."""
    if not out.exists() and _beside(out, "old").is_dir():
        with _hold(out):
            _put_back(out)


def _replace(partial: Path, out: Path) -> None:
    sync_folder(partial)
    if exchange_folders(partial, out):
        return
    old = _beside(out, "old")
    out.rename(old)
    try:
        publish_folder(partial, out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _put_back(out: Path) -> None:
    """Bring a folder that waits as `.NAME.old` back to its place, or remove it where its place is taken."""
    old = _beside(out, "old")
    if not old.is_dir():
        return
    if _is_taken(out):
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.rename(out)


def _is_taken(out: Path) -> bool:
    return out.is_dir() and any(out.iterdir())


@contextmanager
def _hold(out: Path) -> Iterator[None]:
    """Wait until nobody else works beside `out`. The system lets go of the lock when the process ends."""
    import fcntl

    path = _beside(out, "lock")
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(file.fileno(), path):
                continue  # whoever held it has removed it
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f".{out.name}.{ending}")
