"""A file of texts → a file of vectors: in bounded memory, and continued where it was interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi.checkpoint.location import identify_model
from malmoi.data.outputs import refuse_inputs
from malmoi.errors import MalmoiError
from malmoi.features.embedder import Embedder
from malmoi.features.options import VectorOptions, WordOptions
from malmoi.features.vector_file import VectorFile, VectorManifest, recognise, to_json_lines
from malmoi.progress import progress
from malmoi.text.given import check_text
from malmoi.text.rows import TextRow, TextRows

# What is computed between two notes in the journal, and all that is in memory at a time.
_BLOCK_TEXTS = 1024
_BLOCK_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class Plan:
    """All that decides what the output holds: two plans with one recipe give the same file."""

    rows: TextRows
    out: Path
    options: VectorOptions | WordOptions
    recipe: dict[str, Any]

    @property
    def can_resume(self) -> bool:
        return self.rows.source.size is not None

    def find_finished(self) -> VectorManifest | None:
        """What is there already; an output of another plan raises."""
        return recognise(self.out, self.recipe, can_resume=self.can_resume)


def make_plan(
    folder: Path, weights: Sequence[Path], rows: TextRows, out: Path, options: VectorOptions | WordOptions
) -> Plan:
    """Nothing is computed or loaded for this, so what is wrong with the files is said at once."""
    text, id = rows.fields
    refuse_inputs(out, [rows.source.path])
    recipe = {
        "model": identify_model(folder, weights),
        "file": rows.source.identify(),
        "text": text,
        "id": id,
        "reading": asdict(rows.options),
        "words": isinstance(options, WordOptions),
        "options": {name: _plain(value) for name, value in asdict(options).items()},
    }
    if isinstance(options, WordOptions) and out.suffix == ".npy":
        raise MalmoiError(f"--out {out}: word vectors need their words beside them; choose .parquet or .jsonl.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise MalmoiError(f"--out {out}: cannot be written there ({failure.strerror}).") from None
    if not os.access(out.parent, os.W_OK):
        raise MalmoiError(f"--out {out}: the folder {out.parent} cannot be written to.")
    return Plan(rows, out, options, recipe)


def embed_file(embedder: Embedder, plan: Plan) -> VectorManifest:
    """Write the vectors of all texts of the plan's file. Run again after an interruption, it goes on."""
    if isinstance(plan.options, WordOptions):
        dimensions = embedder.count_word_dimensions(plan.options)
    else:
        dimensions = embedder.count_dimensions(plan.options)
    rows = plan.rows
    file = VectorFile(plan.out, plan.recipe, dimensions, can_resume=plan.can_resume)
    with file:
        # Another process may have finished the same file since we looked.
        finished = plan.find_finished()
        if finished is not None:
            file.discard()
            return finished
        description = "going on embedding" if file.manifest.texts else "embedding"
        with progress(description, rows.total_bytes, "B") as show:
            try:
                for block in _cut_blocks(rows, file.manifest.texts):
                    lines, vectors, cut = _embed_block(embedder, block, plan.options)
                    file.append(lines, vectors, len(block), cut)
                    show(rows.bytes_read)
            except MalmoiError:
                # A text at fault: once mended it is another file, so what was made of this one is of no use.
                file.discard()
                raise
        return file.finish()


def print_vectors(embedder: Embedder, rows: TextRows, options: VectorOptions | WordOptions) -> tuple[int, int]:
    """Lines of JSON on standard output, a block of texts at a time; returns how many there are, how many cut."""
    count = cut = 0
    for block in _cut_blocks(rows, 0):
        lines, vectors, more = _embed_block(embedder, block, options)
        sys.stdout.writelines(to_json_lines(lines, vectors))
        sys.stdout.flush()
        count, cut = count + len(block), cut + more
    return count, cut


def _embed_block(
    embedder: Embedder, block: list[TextRow], options: VectorOptions | WordOptions
) -> tuple[list[dict[str, Any]], NDArray[np.float32], int]:
    texts = [row.text for row in block]
    try:
        if isinstance(options, VectorOptions):
            vectors, cut = embedder.embed(texts, options)
            return [{"id": row.id} for row in block], vectors, cut
        found, cut = embedder.words(texts, options, None)
    except MalmoiError:
        _name_place(embedder, block, options)
        raise
    lines = [
        {"id": row.id, "word": word, "start": begin, "end": end}
        for row, one in zip(block, found, strict=True)
        for word, (begin, end) in zip(one.words, one.offsets, strict=True)
    ]
    return lines, np.concatenate([one.vectors for one in found]), cut


def _name_place(embedder: Embedder, block: list[TextRow], options: VectorOptions | WordOptions) -> None:
    """Say about the first text at fault where it stands in its file."""
    for row in block:
        check_text(row.text, row.place)
        try:
            embedder.check_length(row.text, options)
        except MalmoiError as mistake:
            raise MalmoiError(str(mistake).replace("text 0", row.place, 1)) from None


def _cut_blocks(rows: TextRows, skip: int) -> Iterator[list[TextRow]]:
    """The texts in blocks that depend on nothing but the file; those of the first `skip` texts are left out."""
    block: list[TextRow] = []
    characters = done = 0
    for row in rows:
        block.append(row)
        characters += len(row.text)
        if len(block) == _BLOCK_TEXTS or characters >= _BLOCK_CHARACTERS:
            done += len(block)
            if done > skip:
                yield block
            block, characters = [], 0
    if block and done + len(block) > skip:
        yield block


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
