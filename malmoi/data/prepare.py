"""Text → token store: read, split into sentences, encode on all cores, append, and at the end rename into place.

The corpus is cut into blocks of about a megabyte, and so is a document that is longer. One process reads and writes;
the others encode. Whatever the size of the corpus, no more than the document that is read and a few blocks a worker are
in memory (`MEMORY_BOUND_MB` is what the benchmark holds it to).

Work goes on in `OUT.partial`. Its journal says how many blocks are safely in the files, so the same command run again
skips those and goes on; `OUT` itself appears only when it is whole. A store that is there already is verified, and made
anew where it is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi import __version__
from malmoi.data import store as layout
from malmoi.data.folders import digest_file
from malmoi.data.growing import GrowingFolder, sweep_published
from malmoi.data.store import FORMAT, StoreManifest, read_manifest, token_type, verify_files, write_manifest
from malmoi.data.workers import Block, EncodedBlock, encode_blocks
from malmoi.errors import MalmoiError
from malmoi.progress import progress
from malmoi.text.reading import Corpus
from malmoi.text.sentences import SplitterKind, cut_document, find_splitter_version
from malmoi.text.tokenizer import Tokenizer

MEMORY_BOUND_MB = 1000
_BLOCK_CHARACTERS = 1 << 20
_BLOCKS_BETWEEN_NOTES = 16


def prepare_store(
    corpus: Corpus,
    tokenizer: Tokenizer,
    out: str | Path,
    *,
    sentences: SplitterKind = "rules",
    workers: int | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> tuple[StoreManifest, bool]:
    """Make the store `out` and return its manifest, and whether there was anything to do.

    The same call again returns the store as it is, if it is undamaged; an interrupted one goes on where it stopped.
    `tell` is given what the user should know.
    """
    out = Path(out)
    recipe = describe_recipe(corpus, tokenizer, sentences)
    manifest = _recognise(out, recipe, tell)
    if manifest is not None:
        return manifest, False
    partial = out.with_name(out.name + ".partial")
    files = GrowingFolder(partial, layout.ARRAY_FILES, recipe, can_resume=_can_be_recognised(recipe))
    with files:
        # Another process may have finished the same store since we looked.
        manifest = _recognise(out, recipe, lambda sentence: None)
        if manifest is not None:
            files.discard()
            return manifest, False
        is_damaged = not _is_free(out)
        writer = _Writer(files, tokenizer)
        blocks = _cut_blocks(corpus, sentences, writer)
        description = "going on preparing" if writer.written.blocks else "preparing"
        with progress(description, corpus.total_bytes, "B") as show:
            for block in encode_blocks(blocks, tokenizer, sentences, _choose_workers(corpus, workers)):
                writer.append(block)
                show(corpus.bytes_read)
        manifest = writer.finish(corpus, recipe)
        files.publish(out, replace=is_damaged)
    return manifest, True


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
        "splitter": find_splitter_version(sentences),
        "block_characters": _BLOCK_CHARACTERS,
        "files": files,
    }


def _recognise(out: Path, recipe: dict[str, Any], tell: Callable[[str], None]) -> StoreManifest | None:
    """The manifest of the store `out` if it is there and holds what it should, None where it has to be made.

    What is not that store is left alone, and said.
    """
    if _is_free(out):
        return None
    if not any((out / name).is_file() for name in (layout.MANIFEST, layout.TOKENS)):
        raise MalmoiError(f"{out}: in use by something that is not a store; choose another --out.")
    try:
        manifest = read_manifest(out)
    except MalmoiError as damage:
        raise MalmoiError(f"{damage} First choose another --out, or remove this one with: rm -r {out}") from None
    if manifest.recipe != recipe or not _can_be_recognised(recipe):
        raise MalmoiError(
            f"{out}: holds a store made from other text, options or tokenizer, or by another version of what splits "
            "sentences; choose another --out or remove it."
        )
    try:
        verify_files(out, manifest)
    except MalmoiError as damage:
        tell(f"{damage} It is made anew.")
        return None
    sweep_published(out)
    return manifest


def _is_free(out: Path) -> bool:
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


def _can_be_recognised(recipe: dict[str, Any]) -> bool:
    """Whether the same recipe means the same text: nobody knows what comes out of a pipe the next time."""
    return None not in (file["bytes"] for file in recipe["files"])


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


def _cut_blocks(corpus: Corpus, sentences: SplitterKind, writer: _Writer) -> Iterator[Block]:
    """The documents in blocks, without the blocks that an earlier run has written."""
    skip = writer.written.blocks
    try:
        for number, block in enumerate(_fill_blocks(corpus, sentences)):
            if number >= skip:
                yield block
    except MalmoiError:
        # A file at fault: once mended it is another corpus, so what was made of this one is of no use.
        writer.discard()
        raise


def _fill_blocks(corpus: Corpus, sentences: SplitterKind) -> Iterator[Block]:
    texts: list[str] = []
    characters = 0
    for document in corpus:
        for number, part in enumerate(cut_document(document.text, sentences, _BLOCK_CHARACTERS)):
            if number:
                yield Block(texts, goes_on=True)
                texts, characters = [], 0
            texts.append(part)
            characters += len(part)
        if characters >= _BLOCK_CHARACTERS:
            yield Block(texts, goes_on=False)
            texts, characters = [], 0
    if texts:
        yield Block(texts, goes_on=False)


@dataclass
class _Written:
    """What is in the files of a partial store."""

    blocks: int = 0
    tokens: int = 0
    sentences: int = 0
    documents: int = 0
    unknown_tokens: int = 0
    # Sentences of a document that goes on in the next block.
    open_sentences: int = 0
    # Bits are written eight at a time; these wait for their byte.
    waiting_bits: tuple[int, ...] = ()


class _Writer:
    """Appends encoded blocks to the files of a partial store."""

    def __init__(self, files: GrowingFolder, tokenizer: Tokenizer) -> None:
        self._files = files
        self._tokenizer = tokenizer
        self._token_type = token_type(tokenizer.vocab_size)
        self.written = _Written(**(files.facts or {}))
        if files.facts is None:
            for name in (layout.SENTENCES, layout.DOCUMENTS):
                self._write(name, np.zeros(1, dtype="<i8"))

    def append(self, block: EncodedBlock) -> None:
        written = self.written
        self._write(layout.TOKENS, block.ids.astype(self._token_type))
        bits = np.concatenate((np.array(written.waiting_bits, dtype=np.bool_), block.word_starts))
        whole = len(bits) // 8 * 8
        self._write(layout.WORDS, np.packbits(bits[:whole]))
        self._write(layout.SENTENCES, written.tokens + np.cumsum(block.sentence_lengths, dtype="<i8"))
        document_lengths, open_sentences = _join_parts(block, written.open_sentences)
        begin = written.sentences - written.open_sentences
        self._write(layout.DOCUMENTS, begin + np.cumsum(document_lengths, dtype="<i8"))
        written.waiting_bits = tuple(int(bit) for bit in bits[whole:])
        written.blocks += 1
        written.tokens += len(block.ids)
        written.sentences += len(block.sentence_lengths)
        written.documents += len(document_lengths)
        written.open_sentences = open_sentences
        if self._tokenizer.unk_id is not None:
            written.unknown_tokens += int(np.count_nonzero(block.ids == self._tokenizer.unk_id))
        if written.blocks % _BLOCKS_BETWEEN_NOTES == 0:
            self._files.note(asdict(written))

    def _write(self, name: str, values: NDArray[Any]) -> None:
        self._files.append(name, values.tobytes())

    def finish(self, corpus: Corpus, recipe: dict[str, Any]) -> StoreManifest:
        """Complete the folder: last bits, tokenizer, manifest with the digest of every file."""
        written, folder = self.written, self._files.folder
        if not written.tokens:
            self.discard()
            raise MalmoiError(f"no tokens in {_name_sources(corpus)}: nothing was left of the text to store.")
        self._files.note(asdict(written))
        self._write(layout.WORDS, np.packbits(np.array(written.waiting_bits, dtype=np.bool_)))
        self._files.close()
        self._tokenizer.save(folder / layout.TOKENIZER_FOLDER)
        tokenizer_files = sorted(path.name for path in (folder / layout.TOKENIZER_FOLDER).iterdir())
        names = [*layout.ARRAY_FILES, *(f"{layout.TOKENIZER_FOLDER}/{name}" for name in tokenizer_files)]
        manifest = StoreManifest(
            format=FORMAT,
            malmoi=__version__,
            tokenizer=self._tokenizer.fingerprint,
            vocab_size=self._tokenizer.vocab_size,
            tokens=written.tokens,
            sentences=written.sentences,
            documents=written.documents,
            unknown_tokens=written.unknown_tokens,
            recipe=recipe,
            sources=[asdict(report) for report in corpus.reports],
            files={name: digest_file(folder / name) for name in names},
        )
        write_manifest(folder, manifest)
        return manifest

    def discard(self) -> None:
        """Leave nothing behind."""
        self._files.discard()


def _join_parts(block: EncodedBlock, open_sentences: int) -> tuple[NDArray[np.int64], int]:
    """Sentences of each document that ends in a block, without those that have none, and of the one that goes on."""
    lengths = block.text_lengths.copy()
    lengths[0] += open_sentences
    ended, going_on = (lengths[:-1], int(lengths[-1])) if block.goes_on else (lengths, 0)
    return ended[ended > 0], going_on


def _name_sources(corpus: Corpus) -> str:
    first = corpus.sources[0].name
    return first if len(corpus.sources) == 1 else f"{first} and {len(corpus.sources) - 1} more"
