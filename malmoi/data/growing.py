"""Files that grow in a folder of their own, with a journal that says how far they can be trusted.

Whoever makes something large appends to them and notes now and then what is in them. After a kill, the same work finds
the folder, cuts off what stands behind the last note, and goes on from there. What is noted is on the disk before the
note is, and the journal is the last thing to go: neither a kill nor a loss of power leaves it vouching for nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from malmoi.data.folders import LOCK, FolderLock, publish_folder, remove_held_folder, write_whole
from malmoi.errors import MalmoiError

_JOURNAL = "journal.json"
_REPLACED = "replaced"


class GrowingFolder:
    """A folder held by one process at a time. `facts` are what was noted last, None where the work begins anew.

    The recipe is all that decides what the files will hold: what was made by another one is thrown away. A failure to
    write, such as a full disk, ends in a sentence that says what is kept.
    """

    def __init__(self, folder: Path, names: Sequence[str], recipe: Mapping[str, Any], *, can_resume: bool) -> None:
        self.folder = folder
        self.facts: dict[str, Any] | None = None
        self._names = names
        self._recipe = json.loads(json.dumps(recipe))  # as the journal will give it back
        self._can_resume = can_resume

    def __enter__(self) -> GrowingFolder:
        self._lock = FolderLock(self.folder)
        self._lock.__enter__()
        self.facts, sizes = self._take_up()
        self._files = {name: (self.folder / name).open("ab") for name in self._names}
        for name, file in self._files.items():
            file.truncate(sizes[name])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OSError as failure:  # what was still to be written has no room either
            error = error or failure
        if isinstance(error, KeyboardInterrupt) and self._can_resume and self.facts is not None:
            error.add_note(f"what was done is kept in {self.folder}; run the same command again and it goes on")
        self._lock.__exit__(kind, error, trace)
        if isinstance(error, OSError) and self._is_own(error):
            reason = error.strerror or error
            kept = "; what was done so far is kept there: run the same command again and it goes on."
            raise MalmoiError(f"{self.folder}: {reason}{kept if self._can_resume else '.'}") from None

    def _is_own(self, failure: OSError) -> bool:
        """Whether a failure is about this folder; one to read something else names its file itself."""
        return failure.filename is None or self.folder in (path := Path(failure.filename), *path.parents)

    def append(self, name: str, content: bytes) -> None:
        self._files[name].write(content)

    def note(self, facts: Mapping[str, Any]) -> None:
        """Sync, then say so in the journal: it never vouches for what is not on the disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        sizes = {name: os.fstat(file.fileno()).st_size for name, file in self._files.items()}
        journal = {"recipe": self._recipe, "sizes": sizes, "facts": facts}
        write_whole(self.folder / _JOURNAL, json.dumps(journal))
        self.facts = dict(facts)

    def close(self) -> None:
        """Nothing more is appended; the files can be read and renamed."""
        with ExitStack() as all_of_them:
            for file in self._files.values():
                all_of_them.callback(file.close)

    def publish(self, out: Path, *, replace: bool = False) -> None:
        """The folder itself is the result and gets its name; what is left of the work goes once that is so.

        With `replace` it takes the place of one that is of no use: if the process dies in between, this one is whole
        and the same work goes on with it.
        """
        if replace:
            out.rename(self.folder / _REPLACED)
        publish_folder(self.folder, out)
        sweep_published(out)

    def discard(self) -> None:
        """Leave nothing behind."""
        remove_held_folder(self.folder)

    def _take_up(self) -> tuple[dict[str, Any] | None, dict[str, int]]:
        """What an earlier run of the same work has noted, and how many bytes of each file it vouched for."""
        try:
            journal = json.loads((self.folder / _JOURNAL).read_text("utf-8"))
            sizes = {name: int(journal["sizes"][name]) for name in self._names}
            are_there = all((self.folder / name).stat().st_size >= size for name, size in sizes.items())
            if self._can_resume and are_there and journal["recipe"] == self._recipe:
                return dict(journal["facts"]), sizes
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None, dict.fromkeys(self._names, 0)


def sweep_published(out: Path) -> None:
    """Remove what a folder that was published still holds of the work on it."""
    shutil.rmtree(out / _REPLACED, ignore_errors=True)
    for name in (_JOURNAL, LOCK):
        (out / name).unlink(missing_ok=True)
