"""The varints of records, in zigzag encoding, which makes small negative numbers short too."""

from __future__ import annotations

from typing import Final

from groupkeeper.protocol.compression import Content, CorruptRecord

SIGNED: Final = [(byte >> 1) ^ -(byte & 1) for byte in range(0x80)]
"""The value of a single-byte varint."""
_TABLE_SIZE: Final = 0x100
INT32: Final = 35
"""Bits of the longest varint of an integer of 32 bits."""


def read_zigzag(buf: Content, pos: int, bits: int = 70) -> tuple[int, int]:
    """The integer at `pos`, of at most `bits` / 7 bytes, and the position after it.

    Raises CorruptRecord, IndexError.
    """
    value = buf[pos]
    if value < 0x80:
        return SIGNED[value], pos + 1
    byte = buf[pos + 1]
    if byte < 0x80:
        value += (byte << 7) - 0x80
        return (value >> 1) ^ -(value & 1), pos + 2
    value &= 0x7F
    for shift in range(7, bits, 7):
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), pos + 1
    raise CorruptRecord(f"varint of more than {bits // 7} bytes")


def _zigzag(value: int) -> bytes:
    """The varint of an integer of at most 64 bits."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    if 0x80 <= value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Zigzags(dict[int, bytes]):
    def __missing__(self, value: int) -> bytes:
        return _zigzag(value)


ZIGZAG: Final = _Zigzags({value: _zigzag(value) for value in range(_TABLE_SIZE)})
"""Varints by integer; common lengths of records, keys and values are precomputed."""
