"""Vectors → a file: .npy, .parquet or .jsonl, there entirely or not at all, and continued after an interruption.

While it grows, `OUT.partial` is a folder (data/growing.py) with the vectors as plain numbers and a line about each of
them. At the end they become the file. `OUT.json` beside it says what it was made from, so that the same command again
has nothing to do, and another one does not pass for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi.data.folders import publish_file
from malmoi.data.growing import GrowingFolder
from malmoi.data.outputs import find_made, note_made
from malmoi.errors import MalmoiError

_VECTORS, _LINES, _FINAL = "vectors.bin", "rows.jsonl", "final"
_HEADER_BYTES = 128
_ROWS_AT_A_TIME = 4096


@dataclass
class VectorManifest:
    """What a file of vectors is. `cut` counts texts that were longer than the model takes."""

    recipe: dict[str, Any]
    texts: int = 0
    rows: int = 0
    dimensions: int = 0
    cut: int = 0


class VectorFile:
    """Writes vectors block by block. `manifest` says how many texts are in it already."""

    def __init__(self, out: Path, recipe: dict[str, Any], dimensions: int, *, can_resume: bool) -> None:
        self._out = out
        self._dimensions = dimensions
        self._recipe = recipe
        partial = out.with_name(out.name + ".partial")
        made = {**recipe, "dimensions": dimensions}
        self._files = GrowingFolder(partial, (_VECTORS, _LINES), made, can_resume=can_resume)

    def __enter__(self) -> VectorFile:
        self._files.__enter__()
        self.manifest = VectorManifest(self._recipe, dimensions=self._dimensions, **(self._files.facts or {}))
        if self._files.facts is None:
            self._files.append(_VECTORS, bytes(_HEADER_BYTES))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)

    def append(self, lines: list[dict[str, Any]], vectors: NDArray[np.float32], texts: int, cut: int) -> None:
        """Add the rows of some texts, and note in the journal that they are there."""
        self._files.append(_VECTORS, np.ascontiguousarray(vectors, dtype="<f4").tobytes())
        self._files.append(_LINES, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
        manifest = self.manifest
        manifest.texts += texts
        manifest.rows += len(lines)
        manifest.cut += cut
        self._files.note({"texts": manifest.texts, "rows": manifest.rows, "cut": manifest.cut})

    def finish(self) -> VectorManifest:
        """Turn what was gathered into the file and take away what it was gathered in."""
        if not self.manifest.rows:
            self.discard()
            raise MalmoiError("there is no text in the input, so there are no vectors to write.")
        self._files.close()
        final = _WRITERS[self._out.suffix](self)
        note_made(self._out, asdict(self.manifest))
        publish_file(final, self._out)
        self.discard()
        return self.manifest

    def discard(self) -> None:
        """Take away what it was gathered in."""
        self._files.discard()

    @property
    def _folder(self) -> Path:
        return self._files.folder

    def _blocks(self) -> Iterator[tuple[list[dict[str, Any]], NDArray[np.float32]]]:
        with (self._folder / _VECTORS).open("rb") as vectors, (self._folder / _LINES).open(encoding="utf-8") as lines:
            vectors.seek(_HEADER_BYTES)
            for begin in range(0, self.manifest.rows, _ROWS_AT_A_TIME):
                count = min(_ROWS_AT_A_TIME, self.manifest.rows - begin)
                data = np.frombuffer(vectors.read(count * self._dimensions * 4), dtype="<f4")
                yield [json.loads(next(lines)) for _ in range(count)], data.reshape(count, self._dimensions)

    def write_npy(self) -> Path:
        """The vectors as they lie, with numpy's header in front; ids, where records have them, in a file beside."""
        shape = (self.manifest.rows, self._dimensions)
        header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
        length = _HEADER_BYTES - 10
        with (self._folder / _VECTORS).open("r+b") as file:
            file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + header.ljust(length - 1) + b"\n")
        if self._recipe["id"] is not None:
            ids = (json.dumps(line["id"], ensure_ascii=False) for lines, _ in self._blocks() for line in lines)
            beside = self._folder / "ids"
            with beside.open("w", encoding="utf-8") as file_of_ids:
                file_of_ids.writelines(f"{id}\n" for id in ids)
            publish_file(beside, self._out.with_suffix(".ids.jsonl"))
        return self._folder / _VECTORS

    def write_json_lines(self) -> Path:
        """One object a row: what it is about, and its vector."""
        final = self._folder / _FINAL
        with final.open("w", encoding="utf-8") as file:
            for lines, vectors in self._blocks():
                file.writelines(to_json_lines(lines, vectors))
        return final

    def write_parquet(self) -> Path:
        """A column for each field of the lines, and the vectors as lists of fixed length."""
        import pyarrow
        import pyarrow.parquet

        final = self._folder / _FINAL
        whole = all(isinstance(line["id"], int) for lines, _ in self._blocks() for line in lines)
        kinds = {"id": pyarrow.int64() if whole else pyarrow.string(), "word": pyarrow.string()}
        writer = None
        try:
            for lines, vectors in self._blocks():
                columns: dict[str, Any] = {}
                for name in lines[0]:
                    values = [line[name] if name != "id" or whole else str(line[name]) for line in lines]
                    columns[name] = pyarrow.array(values, kinds.get(name, pyarrow.int64()))
                numbers = pyarrow.array(vectors.reshape(-1), pyarrow.float32())
                columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(numbers, self._dimensions)
                table = pyarrow.table(columns)
                writer = writer or pyarrow.parquet.ParquetWriter(str(final), table.schema, compression="none")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        return final


def to_json_lines(lines: list[dict[str, Any]], vectors: NDArray[np.float32]) -> Iterator[str]:
    for line, vector in zip(lines, vectors, strict=True):
        # numpy writes a 32-bit number as shortly as it can be told from its neighbours.
        numbers = ", ".join(map(str, vector))
        yield f'{json.dumps(line, ensure_ascii=False)[:-1]}, "vector": [{numbers}]}}\n'


# Each makes the file in the folder and says where.
_WRITERS: dict[str, Callable[[VectorFile], Path]] = {
    ".npy": VectorFile.write_npy,
    ".jsonl": VectorFile.write_json_lines,
    ".parquet": VectorFile.write_parquet,
}
ENDINGS = tuple(_WRITERS)


def recognise(out: Path, recipe: dict[str, Any], *, can_resume: bool) -> VectorManifest | None:
    """The manifest of an output that is there already for the same inputs; None where there is nothing yet."""
    if out.suffix not in ENDINGS:
        raise MalmoiError(f"--out {out}: the ending says what is written; choose one of {', '.join(ENDINGS)}.")
    note = find_made(out, recipe, can_repeat=can_resume)
    return None if note is None else VectorManifest(**note)
