"""What happens while the files of a task are read: how far it is, and what was found at fault or mended."""

from __future__ import annotations

from dataclasses import dataclass, field

from malmoi.text.files import Files
from malmoi.text.sources import SourceReport


@dataclass
class ReadingNotes:
    """What happened while files were read, filled in as they are."""

    files: list[SourceReport] = field(default_factory=list)
    source: Files | None = None  # tells how far reading has come
    empty: int = 0  # examples with an empty text
    skipped: int = 0  # examples left out by --skip-label
    repaired_answers: int = 0  # answers whose offset was wrong

    @property
    def bytes_read(self) -> int:
        return 0 if self.source is None else self.source.bytes_read

    @property
    def total_bytes(self) -> int | None:
        return None if self.source is None else self.source.total_bytes

    @property
    def can_repeat(self) -> bool:
        """Whether the same can be read again; a pipe cannot."""
        return self.total_bytes is not None

    def identify(self) -> list[list[str | int | None]]:
        """What tells these files, as they now are, from any others."""
        return [] if self.source is None else [one.identify() for one in self.source.sources]
