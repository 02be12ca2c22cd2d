"""The token store: a corpus as token ids on disk, memory-mapped, with the bounds of its words, sentences, documents.

tokens.bin      N ids, two bytes each (four where the vocabulary has more than 65,536 pieces)
words.bin       N bits: 1 where a token begins a word
sentences.bin   S + 1 numbers of eight bytes: sentence s is tokens[sentences[s] : sentences[s + 1]]
documents.bin   D + 1 numbers of eight bytes: document d is sentences documents[d] … documents[d + 1] - 1
tokenizer/      the tokenizer the ids belong to
store.json      what it was made from, counts, and a digest of every file
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi.data.folders import FileDigest, digest_file
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import Tokenizer, load_tokenizer

FORMAT = 1
MANIFEST = "store.json"
TOKENIZER_FOLDER = "tokenizer"
TOKENS, WORDS, SENTENCES, DOCUMENTS = "tokens.bin", "words.bin", "sentences.bin", "documents.bin"
ARRAY_FILES = (TOKENS, WORDS, SENTENCES, DOCUMENTS)


@dataclass(frozen=True)
class StoreManifest:
    """What `store.json` holds."""

    format: int
    malmoi: str
    tokenizer: str
    vocab_size: int
    tokens: int
    sentences: int
    documents: int
    unknown_tokens: int
    recipe: dict[str, Any]
    sources: list[dict[str, Any]]
    files: dict[str, FileDigest]


class Store:
    """An open token store. Arrays are views of the files: opening costs nothing but the check of the digests."""

    def __init__(self, folder: str | Path, *, verify: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        verify_files(self.folder, self.manifest, digests=verify)
        self.tokens: NDArray[np.integer[Any]] = self._map(TOKENS, token_type(self.manifest.vocab_size))
        self.word_bits: NDArray[np.uint8] = self._map(WORDS, np.dtype(np.uint8))
        self.sentences: NDArray[np.int64] = self._map(SENTENCES, np.dtype("<i8"))
        self.documents: NDArray[np.int64] = self._map(DOCUMENTS, np.dtype("<i8"))
        # Document d is the sentences from document_begins[d] to document_ends[d]; see `select`.
        self.document_begins: NDArray[np.int64] = self.documents[:-1]
        self.document_ends: NDArray[np.int64] = self.documents[1:]

    def _map(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        # The plain ndarray view: np.memmap repeats its bookkeeping at every slice.
        return np.asarray(np.memmap(self.folder / name, dtype=dtype, mode="r"))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer the store was made with."""
        tokenizer = load_tokenizer(self.folder / TOKENIZER_FOLDER)
        self.require_tokenizer(tokenizer)
        return tokenizer

    def select(self, chosen: NDArray[np.bool_]) -> Store:
        """The same store with only the chosen documents to make examples from."""
        selection = copy.copy(self)
        selection.document_begins = self.document_begins[chosen]
        selection.document_ends = self.document_ends[chosen]
        return selection

    def require_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Complain unless the store's ids belong to this tokenizer."""
        if tokenizer.fingerprint != self.manifest.tokenizer:
            raise MalmoiError(
                f"{self.folder}: the store was prepared with another tokenizer (fingerprint "
                f"{self.manifest.tokenizer[:12]}, not {tokenizer.fingerprint[:12]}); prepare it again with this one, "
                f"or use the tokenizer in {self.folder / TOKENIZER_FOLDER}."
            )

    def begins_word(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the token at each place begins a word."""
        bits: NDArray[np.uint8] = self.word_bits[places >> 3] >> (7 - (places & 7)).astype(np.uint8)
        return (bits & 1).astype(np.bool_)


def token_type(vocab_size: int) -> np.dtype[Any]:
    """The type a token id is stored in: two bytes while they suffice."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def read_manifest(folder: Path) -> StoreManifest:
    """Read and check `store.json`."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise MalmoiError(f"{folder}: there is no such folder; make a store with: malmoi prepare FILES --out {folder}")
    if not path.is_file():
        raise MalmoiError(f"{folder}: not a token store (it has no {MANIFEST}); make one with malmoi prepare.")
    try:
        fields = json.loads(path.read_text("utf-8"))
        version = fields["format"]
        if version != FORMAT:
            raise MalmoiError(
                f"{folder}: this store has format {version}, made by malmoi {fields.get('malmoi', 'unknown')}; this "
                f"malmoi reads format {FORMAT}. Prepare it again from the text."
            )
        fields["files"] = {name: FileDigest(**digest) for name, digest in fields["files"].items()}
        manifest = StoreManifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as mistake:
        raise MalmoiError(f"{path}: damaged ({mistake}); prepare the store again from the text.") from None
    missing = set(ARRAY_FILES) - set(manifest.files)
    if missing:
        raise MalmoiError(f"{path}: damaged (no digest of {min(missing)}); prepare the store again from the text.")
    return manifest


def write_manifest(folder: Path, manifest: StoreManifest) -> None:
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), ensure_ascii=False, indent=1) + "\n", "utf-8")


def verify_files(folder: Path, manifest: StoreManifest, *, digests: bool = True) -> None:
    """Complain about the first file that is not what was written; without `digests` only sizes are compared."""
    for name, digest in manifest.files.items():
        _check_file(folder / name, digest, digests)


def _check_file(path: Path, expected: FileDigest, verify: bool) -> None:
    advice = "prepare the store again from the text"
    if not path.is_file():
        raise MalmoiError(f"{path}: missing from the store; {advice}.")
    size = path.stat().st_size
    if size != expected.bytes:
        raise MalmoiError(f"{path}: damaged ({size:,} bytes instead of {expected.bytes:,}); {advice}.")
    if verify and digest_file(path).sha256 != expected.sha256:
        raise MalmoiError(f"{path}: damaged (its bytes have changed since it was written); {advice}.")
