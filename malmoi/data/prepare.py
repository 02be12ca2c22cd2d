"""Text → token store: read, split into sentences, encode on all cores, append, and at the end rename into place.

The corpus is cut into blocks of about a megabyte. One process reads and writes; the others encode. Whatever the size of
the corpus, no more than a few blocks a worker are in memory (`MEMORY_BOUND_MB` is what the benchmark holds it to).

Work goes on in `OUT.partial`. Its journal says how many blocks are safely in the files, so the same command run again
skips those and goes on; `OUT` itself appears only when it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi import __version__
from malmoi.data import store as layout
from malmoi.data.folders import FolderLock, digest_file, publish_folder
from malmoi.data.store import FORMAT, StoreManifest, read_manifest, token_type, write_manifest
from malmoi.data.workers import EncodedBlock, encode_blocks
from malmoi.errors import MalmoiError
from malmoi.progress import progress
from malmoi.text.reading import Corpus
from malmoi.text.sentences import SplitterKind
from malmoi.text.tokenizer import Tokenizer

MEMORY_BOUND_MB = 1000
_BLOCK_CHARACTERS = 1 << 20
_BLOCKS_BETWEEN_NOTES = 16
_JOURNAL = "journal.json"


def prepare_store(
    corpus: Corpus,
    tokenizer: Tokenizer,
    out: str | Path,
    *,
    sentences: SplitterKind = "rules",
    workers: int | None = None,
) -> tuple[StoreManifest, bool]:
    """Make the store `out` and return its manifest, and whether there was anything to do.

    The same call again returns the store as it is; an interrupted one goes on where it stopped.
    """
    out = Path(out)
    recipe = describe_recipe(corpus, tokenizer, sentences)
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        return _recognise(out, recipe), False
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".partial")
    partial.mkdir(exist_ok=True)
    with FolderLock(partial), _explain_failure(partial), _Writer(partial, recipe, tokenizer) as writer:
        blocks = _cut_blocks(corpus, writer)
        description = "going on preparing" if writer.journal.blocks else "preparing"
        with progress(description, corpus.total_bytes, "B") as show:
            for block in encode_blocks(blocks, tokenizer, sentences, _choose_workers(corpus, workers)):
                writer.append(block)
                show(corpus.bytes_read)
        manifest = writer.finish(corpus)
        publish_folder(partial, out)
    return manifest, True


@contextmanager
def _explain_failure(partial: Path) -> Iterator[None]:
    """Say what a write that failed leaves behind. A failure to read names its file itself."""
    try:
        yield
    except OSError as failure:
        if failure.filename is not None and partial not in Path(failure.filename).parents:
            raise
        raise MalmoiError(
            f"{partial}: {failure.strerror or failure}; what was done so far is kept there: when there is room, "
            "run the same command again and it goes on."
        ) from None


def describe_recipe(corpus: Corpus, tokenizer: Tokenizer, sentences: SplitterKind) -> dict[str, Any]:
    """All that decides what a store holds: two stores with one recipe are the same store."""
    files = [
        {
            "path": source.name,
            "bytes": source.size,
            "changed_ns": None if source.size is None else source.path.stat().st_mtime_ns,
        }
        for source in corpus.sources
    ]
    return {
        "tokenizer": tokenizer.fingerprint,
        "reading": asdict(corpus.options),
        "sentences": sentences,
        "block_characters": _BLOCK_CHARACTERS,
        "files": files,
    }


def _recognise(out: Path, recipe: dict[str, Any]) -> StoreManifest:
    if (out / layout.MANIFEST).is_file():
        manifest = read_manifest(out)
        if manifest.recipe == recipe and None not in (file["bytes"] for file in recipe["files"]):
            return manifest
        raise MalmoiError(
            f"{out}: holds a store made from other text, options or tokenizer; choose another --out or remove it."
        )
    raise MalmoiError(f"{out}: in use by something that is not a store; choose another --out.")


def _choose_workers(corpus: Corpus, workers: int | None) -> int:
    if workers is not None:
        if workers < 1:
            raise MalmoiError(f"--workers {workers}: at least one is needed.")
        return workers
    # Starting processes takes longer than encoding a few blocks.
    if corpus.total_bytes is not None and corpus.total_bytes < 4 * _BLOCK_CHARACTERS:
        return 1
    # The cores this process may use, where the system can tell; a container often has fewer than the machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cut_blocks(corpus: Corpus, writer: _Writer) -> Iterator[list[str]]:
    """The documents in blocks, without the blocks that an earlier run has written."""
    skip = writer.journal.blocks
    block: list[str] = []
    characters = number = 0
    try:
        for document in corpus:
            block.append(document.text)
            characters += len(document.text)
            if characters >= _BLOCK_CHARACTERS:
                if number >= skip:
                    yield block
                number += 1
                block, characters = [], 0
    except MalmoiError:
        # A file at fault: once mended it is another corpus, so what was made of this one is of no use.
        writer.discard()
        raise
    if block and number >= skip:
        yield block


@dataclass
class _Journal:
    """How far the files of a partial store can be trusted."""

    recipe: dict[str, Any]
    blocks: int = 0
    tokens: int = 0
    sentences: int = 0
    documents: int = 0
    unknown_tokens: int = 0
    # Bits are written eight at a time; these wait for their byte.
    waiting_bits: tuple[int, ...] = ()


class _Writer:
    """Appends encoded blocks to the files of a partial store."""

    def __init__(self, folder: Path, recipe: dict[str, Any], tokenizer: Tokenizer) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._token_type = token_type(tokenizer.vocab_size)
        self.journal = self._take_up(recipe)
        self._files = {name: (folder / name).open("r+b") for name in layout.ARRAY_FILES}
        for name, size in self._sizes().items():
            self._files[name].truncate(size)
            self._files[name].seek(size)

    def _take_up(self, recipe: dict[str, Any]) -> _Journal:
        """The journal of an earlier run where it fits this one, else a new one."""
        try:
            journal = _Journal(**json.loads((self._folder / _JOURNAL).read_text("utf-8")))
            if journal.recipe == recipe and None not in (file["bytes"] for file in recipe["files"]):
                self.journal = journal
                sizes = {name: (self._folder / name).stat().st_size for name in layout.ARRAY_FILES}
                if all(sizes[name] >= size for name, size in self._sizes().items()):
                    return journal
        except (OSError, ValueError, TypeError):
            pass
        for name in layout.ARRAY_FILES:
            first_offset = (0).to_bytes(8, "little") if name in (layout.SENTENCES, layout.DOCUMENTS) else b""
            (self._folder / name).write_bytes(first_offset)
        return _Journal(recipe)

    def _sizes(self) -> dict[str, int]:
        """How many bytes of each file the journal vouches for."""
        return {
            layout.TOKENS: self.journal.tokens * self._token_type.itemsize,
            layout.WORDS: self.journal.tokens // 8,
            layout.SENTENCES: (self.journal.sentences + 1) * 8,
            layout.DOCUMENTS: (self.journal.documents + 1) * 8,
        }

    def append(self, block: EncodedBlock) -> None:
        journal = self.journal
        self._write(layout.TOKENS, block.ids.astype(self._token_type))
        bits = np.concatenate((np.array(journal.waiting_bits, dtype=np.bool_), block.word_starts))
        whole = len(bits) // 8 * 8
        self._write(layout.WORDS, np.packbits(bits[:whole]))
        self._write(layout.SENTENCES, journal.tokens + np.cumsum(block.sentence_lengths, dtype="<i8"))
        self._write(layout.DOCUMENTS, journal.sentences + np.cumsum(block.document_lengths, dtype="<i8"))
        journal.waiting_bits = tuple(int(bit) for bit in bits[whole:])
        journal.blocks += 1
        journal.tokens += len(block.ids)
        journal.sentences += len(block.sentence_lengths)
        journal.documents += len(block.document_lengths)
        if self._tokenizer.unk_id is not None:
            journal.unknown_tokens += int(np.count_nonzero(block.ids == self._tokenizer.unk_id))
        if journal.blocks % _BLOCKS_BETWEEN_NOTES == 0:
            self._note()

    def _write(self, name: str, values: NDArray[Any]) -> None:
        self._files[name].write(values.tobytes())

    def _note(self) -> None:
        """Flush, then say so in the journal: it never vouches for what is not in the files."""
        for file in self._files.values():
            file.flush()
        beside = self._folder / (_JOURNAL + ".new")
        beside.write_text(json.dumps(asdict(self.journal)), "utf-8")
        beside.replace(self._folder / _JOURNAL)

    def finish(self, corpus: Corpus) -> StoreManifest:
        """Complete the folder: last bits, tokenizer, manifest with the digest of every file."""
        journal = self.journal
        if not journal.tokens:
            self.discard()
            raise MalmoiError(f"no tokens in {_name_sources(corpus)}: nothing was left of the text to store.")
        self._write(layout.WORDS, np.packbits(np.array(journal.waiting_bits, dtype=np.bool_)))
        self.__exit__(None, None, None)
        self._tokenizer.save(self._folder / layout.TOKENIZER_FOLDER)
        (self._folder / _JOURNAL).unlink(missing_ok=True)
        names = [*layout.ARRAY_FILES, *(f"{layout.TOKENIZER_FOLDER}/{path.name}" for path in self._tokenizer_files())]
        manifest = StoreManifest(
            format=FORMAT,
            malmoi=__version__,
            tokenizer=self._tokenizer.fingerprint,
            vocab_size=self._tokenizer.vocab_size,
            tokens=journal.tokens,
            sentences=journal.sentences,
            documents=journal.documents,
            unknown_tokens=journal.unknown_tokens,
            recipe=journal.recipe,
            sources=[asdict(report) for report in corpus.reports],
            files={name: digest_file(self._folder / name) for name in names},
        )
        write_manifest(self._folder, manifest)
        return manifest

    def _tokenizer_files(self) -> list[Path]:
        return sorted((self._folder / layout.TOKENIZER_FOLDER).iterdir())

    def discard(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._folder)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()


def _name_sources(corpus: Corpus) -> str:
    first = corpus.sources[0].name
    return first if len(corpus.sources) == 1 else f"{first} and {len(corpus.sources) - 1} more"
