"""What Java says of assignments that it cannot read. The texts were taken from Apache Kafka 4.3.1."""

from struct import pack

import pytest

from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.assignments import Unreadable, read
from groupkeeper.client.admin.types import TopicPartition

SCHEMA = "org.apache.kafka.common.protocol.types.SchemaException: "
ENDS = SCHEMA + "Buffer underflow while parsing consumer protocol's "
RUNTIME = "java.lang.RuntimeException: "
ONE = pack(">hih6sii", 0, 1, 6, b"orders", 1, 0)


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"\0", ENDS + "header"),
        (b"\xde\xad\xbe", SCHEMA + "Unsupported assignment version: -8531"),
        (b"\0\0", ENDS + "assignment"),
        (ONE, ENDS + "assignment"),
        (pack(">hih6sii", 0, 1, 6, b"orders", 2, 0) + b"\0\0", ENDS + "assignment"),
        (b"\0\1\xff\xff\xff\xff", RUNTIME + "non-nullable field assignedPartitions was serialized as null"),
        (pack(">hihi", 0, 1, -1, 0), RUNTIME + "non-nullable field topic was serialized as null"),
        (pack(">hih6si", 0, 1, 6, b"orders", -5), RUNTIME + "non-nullable field partitions was serialized as null"),
        (
            pack(">hi", 0, 2**31 - 1),
            RUNTIME + "Tried to allocate a collection of size 2147483647, but there are only 0 bytes remaining.",
        ),
        (
            pack(">hih3s", 0, 1, 90, b"ord"),
            RUNTIME + "Error reading byte array of 90 byte(s): only 3 byte(s) available",
        ),
        (ONE + b"\0\0\0\x09x", "java.lang.IllegalArgumentException: newLimit > capacity: (9 > 1)"),
    ],
)
def test_what_cannot_be_read_is_told_as_by_java(blob: bytes, text: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(blob)
    assert java.described(raised.value) == text


def test_java_reads_some_that_break_the_rules() -> None:
    assert read(ONE + pack(">i", -7)) == (TopicPartition("orders", 0),)
    assert read(ONE.replace(b"orders", b"\xffrders") + pack(">i", -1)) == (TopicPartition("\ufffdrders", 0),)
