import struct

from malmoi.training.events import EventFile, _checksum


def test_the_checksum_is_the_masked_crc32c():
    # The check value of CRC-32C is that of "123456789".
    crc = 0xE3069283
    assert _checksum(b"123456789") == struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def test_records_can_be_read_back(tmp_path):
    events = EventFile(tmp_path, 0)
    events.write(300, {"loss": 1.5, "held_out/mlm_loss": 2.25})
    events.close()
    [path] = tmp_path.iterdir()
    data, records = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert data[8:12] == _checksum(data[:8])
        record, checksum = data[12 : 12 + length], data[12 + length : 16 + length]
        assert checksum == _checksum(record)
        records.append(record)
        data = data[16 + length :]
    assert b"brain.Event:2" in records[0]
    assert b"held_out/mlm_loss" in records[1] and struct.pack("<f", 2.25) in records[1]
    assert b"\x10\xac\x02" in records[1]  # step 300
