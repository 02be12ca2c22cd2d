"""The tokenizer: text → token ids and back. A thin face over the `tokenizers` library that reads and writes the
folder everybody uses (tokenizer.json, vocab.txt, tokenizer_config.json, …).

Training is in tokenizer_training.py, adding pieces in tokenizer_extension.py, the figures in tokenizer_report.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from malmoi.errors import MalmoiError
from malmoi.text.panics import catch_panics
from malmoi.text.special_tokens import ROLES, token_content
from malmoi.text.tokenizer_files import read_tokenizer_files
from malmoi.values import Encoded

# Names the special tokens carry almost everywhere: they decide only where no file gives a token its role.
_USUAL_NAMES = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
    "mask_token": ("[MASK]", "<mask>"),
}


class Tokenizer:
    """Turns text into ids. `config` is the content of tokenizer_config.json: the class that transformers will use and
    the roles of the special tokens (`"mask_token": "[MASK]"`)."""

    def __init__(self, backend: tokenizers.Tokenizer, config: dict[str, Any]) -> None:
        # Lengths are the business of whoever makes batches: a limit that came with the files must not cut a text.
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.config = config
        self.kind: str = type(backend.model).__name__.lower()
        self.vocab_size: int = max(backend.get_vocab().values(), default=-1) + 1
        self.pad_id = self._role("pad_token")
        self.unk_id = self._role("unk_token")
        self.cls_id = self._role("cls_token")
        self.sep_id = self._role("sep_token")
        self.mask_id = self._role("mask_token")
        self.bos_id = self._role("bos_token")
        self.eos_id = self._role("eos_token")

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids that stand for no text: the roles and every token its files call special."""
        added = {id for id, token in self.backend.get_added_tokens_decoder().items() if token.special}
        roles = (self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id, self.bos_id, self.eos_id)
        return frozenset(added.union(id for id in roles if id is not None))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that decides ids; two tokenizers with the same one give the same ids."""
        parts = json.loads(self.backend.to_str())
        deciding = {part: parts[part] for part in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        deciding["roles"] = [self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id, self.bos_id, self.eos_id]
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()

    @catch_panics()
    def encode(self, text: str, pair: str | None = None, *, specials: bool = True) -> Encoded:
        """One text, or a pair of texts, as ids; with `specials` it gets its [CLS] and [SEP]."""
        return _encoded(self.backend.encode(text, pair, add_special_tokens=specials))

    @catch_panics()
    def encode_batch(self, texts: list[str], *, specials: bool = True) -> list[Encoded]:
        """Many texts at once, on all cores."""
        return [_encoded(one) for one in self.backend.encode_batch(texts, add_special_tokens=specials)]

    @catch_panics()
    def decode(self, ids: Sequence[int], *, skip_specials: bool = True) -> str:
        """The text of `ids`; for WordPiece and Unigram spaces are where they usually stand, not where they stood."""
        return self.backend.decode(list(ids), skip_special_tokens=skip_specials)

    def token(self, id: int) -> str:
        """The piece behind an id."""
        token = self.backend.id_to_token(id)
        if token is None:
            raise MalmoiError(
                f"The tokenizer has no token with the id {id}; its ids go from 0 to {self.vocab_size - 1}."
            )
        return token

    def id(self, token: str) -> int | None:
        """The id of a piece, or None where the vocabulary does not have it."""
        return self.backend.token_to_id(token)

    def save(self, folder: Path) -> None:
        """Write the tokenizer into `folder` as the files that transformers reads; each file appears whole."""
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
        staging.mkdir()
        try:
            self.write_files(staging)
            if folder.exists():
                for path in staging.iterdir():
                    path.replace(folder / path.name)
            else:
                staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def write_files(self, folder: Path) -> None:
        """Write the files into a folder that is nobody's yet."""
        for name, text in self._files().items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")

    def _files(self) -> dict[str, str]:
        roles = {role: token for role in ROLES if (token := self._role_name(role)) is not None}
        added = {
            str(id): {
                "content": token.content,
                "lstrip": token.lstrip,
                "normalized": token.normalized,
                "rstrip": token.rstrip,
                "single_word": token.single_word,
                "special": token.special,
            }
            for id, token in sorted(self.backend.get_added_tokens_decoder().items())
        }
        files = {
            "tokenizer.json": self.backend.to_str(pretty=True),
            "tokenizer_config.json": _json({**self.config, **roles, "added_tokens_decoder": added}),
            "special_tokens_map.json": _json(roles),
        }
        model = json.loads(self.backend.to_str())["model"]
        if self.kind == "wordpiece":
            pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            # A line's number is its piece's id, so a vocabulary with gaps cannot be written in this form.
            if model["vocab"][pieces[-1]] == len(pieces) - 1:
                files["vocab.txt"] = "".join(f"{piece}\n" for piece in pieces)
        elif self.kind == "bpe":
            files["vocab.json"] = json.dumps(model["vocab"], ensure_ascii=False)
            merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
            files["merges.txt"] = "#version: 0.2\n" + "".join(f"{merge}\n" for merge in merges)
        return files

    def _role(self, role: str) -> int | None:
        name = self._role_name(role)
        return None if name is None else self.backend.token_to_id(name)

    def _role_name(self, role: str) -> str | None:
        named = token_content(self.config.get(role))
        if named is not None:
            return named
        candidates = _USUAL_NAMES.get(role, ())
        if role == "unk_token" and isinstance(model_name := getattr(self.backend.model, "unk_token", None), str):
            candidates = (model_name, *candidates)
        return next((name for name in candidates if self.backend.token_to_id(name) is not None), None)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Read a tokenizer from a Hugging Face folder or from a vocab.txt; it behaves as AutoTokenizer's would."""
    return Tokenizer(*read_tokenizer_files(Path(folder)))


def _encoded(encoding: tokenizers.Encoding) -> Encoded:
    return Encoded(encoding.ids, encoding.type_ids, encoding.offsets, encoding.word_ids)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
