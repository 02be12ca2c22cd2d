"""A SentencePiece model file (spiece.model and the like), read without the sentencepiece library.

The file is one protocol-buffer message: the pieces with their scores, how they were trained, how text is normalised.
Field numbers are those of sentencepiece_model.proto.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from malmoi.errors import MalmoiError

FILE_NAMES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # types of pieces

Message = dict[int, list[int | bytes]]
_UNIGRAM = 1
_OTHER_KINDS = {2: "BPE", 3: "word", 4: "character"}


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """What the file says that decides ids. A role (unk_token, …) that the model does not have is not in `role_ids`."""

    pieces: list[tuple[str, float, int]]  # text, score, type
    role_ids: dict[str, int]
    byte_fallback: bool
    character_map: bytes
    space_before_text: bool
    single_spaces: bool


def read_model(path: Path) -> SentencePieceModel:
    """Read a Unigram model; any other file is refused."""
    try:
        message = _read_message(path.read_bytes())
        pieces = [_read_piece(_read_message(_bytes(value))) for value in message[1]]
        trainer, normalizer = (_read_message(_bytes(message[field][-1])) for field in (2, 3))
        kind = _integer(trainer, 3, _UNIGRAM)
        ids = {
            "unk_token": _integer(trainer, 40, 0),
            "bos_token": _integer(trainer, 41, 1),
            "eos_token": _integer(trainer, 42, 2),
            "pad_token": _integer(trainer, 43, -1),
        }
        model = SentencePieceModel(
            pieces,
            {role: id for role, id in ids.items() if 0 <= id < len(pieces)},
            byte_fallback=bool(_integer(trainer, 35, 0)),
            character_map=_bytes(normalizer.get(2, [b""])[-1]),
            space_before_text=bool(_integer(normalizer, 3, 1)),
            single_spaces=bool(_integer(normalizer, 4, 1)),
        )
    except (ValueError, LookupError, struct.error):
        raise MalmoiError(f"{path} is no SentencePiece model, or only a part of one; fetch the file again.") from None
    if kind != _UNIGRAM:
        raise MalmoiError(
            f"{path} is a SentencePiece model of the {_OTHER_KINDS.get(kind, 'unknown')} kind, and only Unigram ones "
            "are read; save it with transformers so that the folder has a tokenizer.json."
        )
    if "unk_token" not in model.role_ids:
        raise MalmoiError(f"{path} has no piece for what it does not know; a SentencePiece model needs one.")
    return model


def _read_piece(message: Message) -> tuple[str, float, int]:
    score = struct.unpack("<f", _bytes(message[2][-1]))[0] if 2 in message else 0.0
    return _bytes(message[1][-1]).decode(), score, _integer(message, 3, NORMAL)


def _read_message(data: bytes) -> Message:
    """The fields of a protocol-buffer message by number, each with all its values."""
    message: Message = {}
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        value: int | bytes
        if tag & 7 == 0:
            value, position = _read_varint(data, position)
        else:
            length, position = _read_varint(data, position) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], position)
            value = data[position : position + length]
            position += length
        message.setdefault(tag >> 3, []).append(value)
    if position > len(data):
        raise ValueError("the last field is cut short")
    return message


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number has no end")


def _integer(message: Message, field: int, default: int) -> int:
    value = message.get(field, [default])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where text or a message belongs")
    return value
