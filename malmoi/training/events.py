"""TensorBoard's event file, written directly: a record format and one message, not worth a dependency of its size."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

_FRAME = 16  # bytes around an event: its length, and two checksums
_STEP = 2


class EventFile:
    """Scalars by step, for `tensorboard --logdir RUN`. A resumed run begins a new file, as TensorBoard expects; what
    earlier ones hold from `first_step` on is taken back, or it would be shown twice."""

    def __init__(self, folder: Path, first_step: int) -> None:
        for path in folder.glob("events.out.tfevents.*.malmoi.*"):
            _take_back(path, first_step)
        self._file = (folder / f"events.out.tfevents.{int(time.time()):010d}.malmoi.{first_step}").open("ab")
        self._append(_double(1, time.time()) + _text(3, b"brain.Event:2"))

    def write(self, step: int, scalars: dict[str, float]) -> None:
        values = b"".join(_text(1, _text(1, name.encode()) + _float(2, value)) for name, value in scalars.items())
        self._append(_double(1, time.time()) + _integer(_STEP, step) + _text(5, values))

    def _append(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _take_back(path: Path, first_step: int) -> None:
    """Cut an event file off before the first record of a later step, or of one that a kill has cut in two."""
    content, end = path.read_bytes(), 0
    while end + _FRAME <= len(content):
        (length,) = struct.unpack_from("<Q", content, end)
        following = end + _FRAME + length
        if following > len(content) or _read_step(content[end + 12 : end + 12 + length]) >= first_step:
            break
        end = following
    if end < len(content):
        os.truncate(path, end)


def _read_step(event: bytes) -> int:
    """The step of an event as it is written below: the time, then the step, if it has one."""
    if len(event) < 10 or event[9] != _STEP << 3:
        return -1
    step = 0
    for place, byte in enumerate(event[10:]):
        step |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return step


# --- protocol buffers: a field is its number and kind, then its value ---------------------------------------------


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


# --- the masked CRC-32C of a record -------------------------------------------------------------------------------


def _make_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ 0x82F63B78 * (number & 1)
        table.append(number)
    return table


_TABLE = _make_table()


def _checksum(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
