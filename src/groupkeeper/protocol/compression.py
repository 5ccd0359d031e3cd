"""Compression of record batches: gzip, snappy, lz4 and zstd, as Apache Kafka's clients write and read them.

Decompression never yields more than `limit` bytes, and a buffer is never larger than the frame's own structure allows,
so a decompression bomb raises CorruptRecord.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from struct import error as struct_error
from typing import TypeAlias, cast

import cramjam

from groupkeeper.protocol import MalformedMessage

Content: TypeAlias = bytes | bytearray
"""Decompressed bytes."""

MAX_DECOMPRESSED = 128 * 1024 * 1024
"""Default limit in bytes of one batch's decompressed records."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codec names; the index is the codec's number in a batch's attributes."""

_FIRST_BUFFER = 64 * 1024
_FIRST_PIECE, _LARGEST_PIECE = 512, 16 * 1024
"""Bytes of a gzip stream per step: few at first, as zlib copies the bytes after the end of a member."""
_USUAL_RATIO = 16

_BE32 = Struct(">i")
_LE32 = Struct("<I")

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_SNAPPY_CHUNK = 32 * 1024

# Frame descriptor of independent blocks of 64 KiB without checksums, the only kind that Apache Kafka's Java client
# reads and writes; the last byte is the descriptor's checksum.
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_MAX_RATIO = 255

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK = 128 * 1024
_ZSTD_LEVEL = 3


class CorruptRecord(MalformedMessage):
    """The bytes are not a record batch: bad checksum, bad structure, or data that cannot be decompressed within the
    limit.
    """


class ContentTooLarge(CorruptRecord):
    """The decompressed records would take more bytes than allowed."""


def compress(codec: str, plain: bytes) -> bytes:
    """`plain` in the form that `codec` (one of CODECS) has in a record batch. Raises ValueError for another name."""
    match codec:
        case "none":
            return plain
        case "gzip":
            packer = zlib.compressobj(wbits=31)
            return packer.compress(plain) + packer.flush()
        case "snappy":
            return _snappy_compress(plain)
        case "lz4":
            return _lz4_compress(plain)
        case "zstd":
            return bytes(cramjam.zstd.compress(plain, level=_ZSTD_LEVEL))
    raise ValueError(f"unknown compression {codec!r}: one of {', '.join(CODECS)}")


def decompress(codec: int, packed: bytes, *, magic: int = 2, limit: int = MAX_DECOMPRESSED) -> bytes:
    """The decompressed content of `packed`; `codec` is its number in the batch's attributes, `magic` the batch's
    format.

    Raises CorruptRecord for an unknown codec and bytes in another format, and ContentTooLarge for contents longer than
    `limit`.
    """
    return bytes(unpacked(codec, packed, magic=magic, limit=limit))


def unpacked(codec: int, packed: bytes, *, magic: int = 2, limit: int = MAX_DECOMPRESSED) -> Content:
    """As `decompress`, without a last copy: the result may be a bytearray, whose slices are not hashable."""
    if codec == 0:
        return packed
    try:
        reader = _READERS[codec]
    except KeyError:
        raise CorruptRecord(f"unknown compression codec {codec}") from None
    if codec == 3 and magic == 0:
        packed = _with_right_lz4_checksum(packed)
    try:
        return cast("Content", reader(packed, limit))
    except (cramjam.DecompressionError, zlib.error, struct_error, IndexError) as error:
        raise CorruptRecord(f"{CODECS[codec]}: {error}") from error


def beginning(codec: int, packed: bytes, size: int) -> bytes:
    """The first `size` bytes of a content that is longer; fewer, even none, for codecs that make it costly. Damaged
    input gives arbitrary bytes.
    """
    if codec == 1:
        with suppress(zlib.error):
            return zlib.decompressobj(wbits=31).decompress(packed, size)
    reader = {3: cramjam.lz4, 4: cramjam.zstd}.get(codec)
    if reader is None:
        return b""
    out = bytearray(size)
    with suppress(cramjam.DecompressionError):  # the buffer is full
        reader.decompress_into(packed, out)
    return bytes(out)


def _checked(size: int, limit: int) -> int:
    if size > limit:
        raise ContentTooLarge(f"decompressed records may take {size} bytes, more than the limit of {limit}")
    return size


def _gzip_decompress(packed: bytes, limit: int) -> bytearray:
    out = bytearray()
    rest = memoryview(packed)
    while rest:  # a stream may have several members
        unpacker = zlib.decompressobj(wbits=31)
        size = _FIRST_PIECE
        while not unpacker.eof:
            if not rest:
                raise CorruptRecord("gzip: the stream ends early")
            out += unpacker.decompress(rest[:size], limit + 1 - len(out))
            _checked(len(out), limit)
            rest = rest[min(size, len(rest)) - len(unpacker.unused_data) :]
            size = min(4 * size, _LARGEST_PIECE)
    return out


def _snappy_compress(plain: bytes) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(plain), _SNAPPY_CHUNK):
        chunk = bytes(cramjam.snappy.compress_raw(plain[start : start + _SNAPPY_CHUNK]))
        out += _BE32.pack(len(chunk))
        out += chunk
    return bytes(out)


def _snappy_decompress(packed: bytes, limit: int) -> bytearray:
    """Xerial's framing, which the Java client writes, or one raw snappy block, which some other clients write."""
    if not packed.startswith(_XERIAL_MAGIC):
        return _snappy_block(packed, limit)
    out = bytearray()
    pos = len(_XERIAL_HEADER)
    while pos < len(packed):
        if packed.startswith(_XERIAL_MAGIC, pos):  # concatenated streams
            pos += len(_XERIAL_HEADER)
            continue
        (size,) = _BE32.unpack_from(packed, pos)
        pos += 4
        if not 0 <= size <= len(packed) - pos:
            raise CorruptRecord(f"snappy: chunk of {size} bytes where {len(packed) - pos} remain")
        out += _snappy_block(packed[pos : pos + size], limit - len(out))
        pos += size
    return out


def _snappy_block(packed: bytes, limit: int) -> bytearray:
    # An element of three bytes yields at most 64 bytes: a longer announced length is false, and must not be allocated.
    size = _checked(cramjam.snappy.decompress_raw_len(packed), limit)
    if size > 32 * len(packed):
        raise CorruptRecord(f"snappy: a block of {len(packed)} bytes announces {size}")
    out = bytearray(size)
    if cramjam.snappy.decompress_raw_into(packed, out) != size:
        raise CorruptRecord("snappy: the block does not have its announced size")
    return out


def _lz4_compress(plain: bytes) -> bytes:
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(plain), _LZ4_BLOCK):
        chunk = plain[start : start + _LZ4_BLOCK]
        packed = bytes(cramjam.lz4.compress_block(chunk, store_size=False))
        if len(packed) < len(chunk):
            out += _LE32.pack(len(packed)) + packed
        else:
            out += _LE32.pack(len(chunk) | _LZ4_STORED) + chunk
    out += bytes(4)
    return bytes(out)


def _lz4_decompress(packed: bytes, limit: int) -> bytearray:
    """The content of all frames; cramjam up to 2.13 reads only the first one of several."""
    out = bytearray()
    pos = 0
    while True:
        end, bound = _lz4_frame(packed, pos)
        if bound:
            part = _decompress_into(cramjam.lz4.decompress_into, packed[pos:end], bound, limit - len(out))
            out = out + part if out else part
        pos = end
        if pos >= len(packed):
            return out


def _lz4_frame(packed: bytes, pos: int) -> tuple[int, int]:
    """Where the frame at `pos` ends, and an upper bound for its content, from the sizes of its blocks."""
    if not packed.startswith(_LZ4_MAGIC, pos):
        raise CorruptRecord("lz4: unknown frame descriptor")
    flags, largest = packed[pos + 4], 1 << (8 + 2 * (packed[pos + 5] >> 4 & 7))
    pos += _lz4_header_size(flags)
    bound = 0
    while True:
        (size,) = _LE32.unpack_from(packed, pos)
        pos += 4
        if size == 0:
            break
        size, stored = size & ~_LZ4_STORED, size & _LZ4_STORED
        if size > len(packed) - pos:
            raise CorruptRecord(f"lz4: block of {size} bytes where {len(packed) - pos} remain")
        bound += size if stored else min(largest, size * _LZ4_MAX_RATIO)
        pos += size + (4 if flags & 0x10 else 0)
    return pos + (4 if flags & 0x04 else 0), bound


def _lz4_header_size(flags: int) -> int:
    return 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)


def _with_right_lz4_checksum(packed: bytes) -> bytes:
    """Corrects the descriptor's checksum: in message sets of magic 0 it covers the wrong bytes, which no library
    accepts.
    """
    end = _lz4_header_size(packed[4] if len(packed) > 4 else 0)
    if end > len(packed):
        raise CorruptRecord("lz4: the frame ends in its header")
    checksum = (_xxh32(packed[4 : end - 1]) >> 8) & 0xFF
    return packed[: end - 1] + bytes((checksum,)) + packed[end:]


def _xxh32(chunk: bytes) -> int:
    """xxHash32, seed 0, of fewer than 16 bytes."""
    mask = 0xFFFFFFFF
    value = 374761393 + len(chunk)
    whole = len(chunk) & ~3
    for pos in range(0, whole, 4):
        value = (value + int.from_bytes(chunk[pos : pos + 4], "little") * 3266489917) & mask
        value = ((value << 17 | value >> 15) & mask) * 668265263 & mask
    for byte in chunk[whole:]:
        value = (value + byte * 374761393) & mask
        value = ((value << 11 | value >> 21) & mask) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16


def _zstd_decompress(packed: bytes, limit: int) -> bytearray:
    bound, pos = 0, 0
    while pos < len(packed):
        frame_bound, pos = _zstd_frame_bound(packed, pos, limit)
        bound += frame_bound
    return _decompress_into(cramjam.zstd.decompress_into, packed, bound, limit)


def _zstd_frame_bound(packed: bytes, pos: int, limit: int) -> tuple[int, int]:
    """An upper bound for the content of the frame at `pos`, from its block headers, and the position after the
    frame.
    """
    (magic,) = _LE32.unpack_from(packed, pos)
    if magic & ~0xF == _ZSTD_SKIPPABLE:
        return 0, pos + 8 + int(_LE32.unpack_from(packed, pos + 4)[0])
    if magic != _ZSTD_MAGIC:
        raise CorruptRecord("zstd: unknown frame descriptor")
    flags = packed[pos + 4]
    pos += 5
    single_segment = flags & 0x20
    if not single_segment:
        exponent, mantissa = packed[pos] >> 3, packed[pos] & 7
        _checked((1 << (10 + exponent)) // 8 * (8 + mantissa), max(limit, MAX_DECOMPRESSED))  # the window
        pos += 1
    pos += (0, 1, 2, 4)[flags & 3]
    pos += (1 if single_segment else 0, 2, 4, 8)[flags >> 6]
    bound = 0
    while True:
        header = int.from_bytes(packed[pos : pos + 3], "little")
        size, kind = header >> 3, header >> 1 & 3
        if pos + 3 > len(packed):
            raise CorruptRecord("zstd: the frame ends early")
        pos += 3 + (1 if kind == 1 else size)
        bound += _ZSTD_BLOCK if kind == 2 else size
        if header & 1:
            break
    return bound, pos + (4 if flags & 0x04 else 0)


def _decompress_into(reader: Callable[[bytes, bytearray], int], packed: bytes, bound: int, limit: int) -> bytearray:
    """`reader`'s output, of at most min(bound, limit) bytes, in a buffer that grows from a usual size."""
    most = min(bound, limit)
    size = min(most, _FIRST_BUFFER + _USUAL_RATIO * len(packed))
    while True:
        out = bytearray(size)
        try:
            length = reader(packed, out)
        except cramjam.DecompressionError:
            if size == most:
                _checked(bound, limit)
                raise
            size = min(most, size * 8)
        else:
            del out[length:]
            return out


_READERS: dict[int, Callable[[bytes, int], bytearray]] = {
    1: _gzip_decompress,
    2: _snappy_decompress,
    3: _lz4_decompress,
    4: _zstd_decompress,
}
