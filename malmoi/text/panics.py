"""What happens where the tokenizers library panics, as patterns of strangers can make it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from malmoi.errors import MalmoiError

# The class cannot be imported, and derives from BaseException: nothing that is usual would catch it.
_PANIC = "PanicException"


@contextmanager
def catch_panics(subject: str = "the tokenizer") -> Iterator[None]:
    """Make a panic of the library a sentence about `subject`."""
    try:
        yield
    except BaseException as failure:
        if type(failure).__name__ != _PANIC:
            raise
        raise MalmoiError(
            f"{subject} makes the tokenizers library fail ({failure}): its tokenizer.json is damaged, or holds a "
            "pattern that takes too long; use another one."
        ) from None
