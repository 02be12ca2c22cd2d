"""What a failure to write does not say by itself: on a full disk the system names no file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Give a failure of the system the name of the file or folder that is written, where it has none."""
    try:
        yield
    except OSError as failure:
        failure.filename = failure.filename or str(path)
        raise
