"""The codecs of record batches: forms of other writers, limits, broken input."""

import contextlib
import gzip
import random
import zlib

import cramjam
import pytest

from groupkeeper.protocol.compression import CODECS, CorruptRecord, compress, decompress

TEXT = b"".join(b"%d groups of %d consumers; " % (i % 97, i) for i in range(20_000))
NOISE = random.Random(1).randbytes(200_000)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("plain", [b"", b"x", TEXT, NOISE], ids=["empty", "byte", "text", "noise"])
def test_what_is_compressed_comes_back(codec: str, plain: bytes) -> None:
    assert decompress(CODECS.index(codec), compress(codec, plain)) == plain


@pytest.mark.parametrize("codec", CODECS[1:])
def test_the_limit_holds(codec: str) -> None:
    packed = compress(codec, TEXT)
    number = CODECS.index(codec)
    assert decompress(number, packed, limit=len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord):
        decompress(number, packed, limit=len(TEXT) - 1)


def bombs() -> list[tuple[str, bytes]]:
    zeros = bytes(16 * 1024 * 1024)
    return [
        ("gzip", zlib.compress(zeros, wbits=31) * 20),
        ("zstd", bytes(cramjam.zstd.compress(zeros)) * 20),
        ("lz4", bytes(cramjam.lz4.compress(zeros)) * 20),
        ("snappy", b"\xff\xff\xff\xff\x0f" + bytes(100)),
        ("snappy", compress("snappy", zeros)[:16] + compress("snappy", zeros)[16:] * 20),
    ]


@pytest.mark.parametrize(("codec", "packed"), bombs(), ids=[codec for codec, _ in bombs()])
def test_bombs_end_in_an_error(codec: str, packed: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decompress(CODECS.index(codec), packed)


def test_lz4_of_several_frames() -> None:
    text, empty, noise = compress("lz4", TEXT), compress("lz4", b""), compress("lz4", NOISE)
    assert decompress(3, text + empty + noise) == TEXT + NOISE
    assert decompress(3, text + empty, limit=len(TEXT)) == TEXT
    checked = bytes(cramjam.lz4.compress(NOISE))  # with a checksum at its end
    for broken in (b"", text + noise[:-4], text + checked[:-1], text + b"more", text + b"\x50\x2a\x4d\x18" + bytes(4)):
        with pytest.raises(CorruptRecord):
            decompress(3, broken)
    with pytest.raises(CorruptRecord):
        decompress(3, text + noise, limit=len(TEXT) + len(NOISE) - 1)


@pytest.mark.slow
def test_forms_of_other_writers() -> None:
    assert decompress(2, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert decompress(2, compress("snappy", TEXT) + compress("snappy", NOISE)) == TEXT + NOISE
    assert decompress(3, bytes(cramjam.lz4.compress(TEXT))) == TEXT  # dependent blocks with checksums
    assert decompress(4, bytes(cramjam.zstd.compress(TEXT, level=19)) * 2) == TEXT * 2
    assert decompress(4, b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + compress("zstd", TEXT)) == TEXT
    assert decompress(1, gzip.compress(TEXT) + gzip.compress(NOISE)) == TEXT + NOISE


def test_a_wrong_lz4_descriptor_checksum_is_accepted_in_magic_0_only() -> None:
    packed = bytearray(compress("lz4", TEXT))
    packed[6] ^= 0xFF
    assert decompress(3, bytes(packed), magic=0) == TEXT
    with pytest.raises(CorruptRecord):
        decompress(3, bytes(packed), magic=1)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_broken_input_ends_in_one_error(codec: str) -> None:
    number, packed, rng = CODECS.index(codec), compress(codec, TEXT[:5000]), random.Random(2)
    for cut in range(0, len(packed) - 1, 7):
        with contextlib.suppress(CorruptRecord):  # only whole frames and chunks end well
            assert TEXT.startswith(decompress(number, packed[:cut]))
    for _ in range(500):
        changed = bytearray(packed)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        with contextlib.suppress(CorruptRecord):
            decompress(number, bytes(changed))


def test_unknown_codecs() -> None:
    with pytest.raises(CorruptRecord, match="codec 5"):
        decompress(5, b"")
    with pytest.raises(ValueError, match="brotli"):
        compress("brotli", b"")
