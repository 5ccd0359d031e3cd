"""Records of MirrorMaker 2's internal topics, as its version 4.3.1 wrote them."""

from struct import pack

import pytest

from groupkeeper.operations.plans.clones.mirror_records import (
    Checkpoint,
    OffsetSync,
    decode_checkpoint,
    decode_offset_sync,
)
from groupkeeper.protocol.codec import MalformedMessage

SYNC = b"\0\6orders\0\0\0\2", b"\0\0\0\0\0\0\0e\0\0\0\0\0\0\0f"
CHECKPOINT = b"\0\1g\0\x0beast.orders\0\0\0\0", b"\0\0\0\0\0\0\0\0\2\xbc\0\0\0\0\0\0\2_\0\0"


def test_what_is_written_is_read() -> None:
    assert decode_offset_sync(*SYNC) == OffsetSync("orders", 2, 101, 102)
    assert decode_checkpoint(*CHECKPOINT) == Checkpoint("g", "east.orders", 0, 700, 607)


def test_tombstones_are_nothing() -> None:
    assert decode_offset_sync(SYNC[0], None) is None
    assert decode_checkpoint(CHECKPOINT[0], None) is None


@pytest.mark.parametrize("value", [b"", b"\0" * 7, pack(">q", 1)])
def test_other_records_are_refused(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_offset_sync(SYNC[0], value)
    with pytest.raises(MalformedMessage):
        decode_checkpoint(CHECKPOINT[0], value)
    with pytest.raises(MalformedMessage):
        decode_offset_sync(b"\0\6order", SYNC[1])
    with pytest.raises(MalformedMessage):
        decode_checkpoint(b"\0\1\xff\0\1t\0\0\0\0", CHECKPOINT[1])
