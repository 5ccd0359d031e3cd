"""Subscription and assignment blobs."""

import pytest

from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedPartition
from groupkeeper.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedPartition

SUBSCRIPTION = ConsumerProtocolSubscription(["t", "ü"], b"\x01", [OwnedPartition("t", [0, 2])], 5, "rack")


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_a_subscription(version: int) -> None:  # GC-30
    blob = encode_subscription(SUBSCRIPTION, version)
    decoded = decode_subscription(blob)
    assert list(decoded.topics) == ["t", "ü"]
    assert decoded.user_data == b"\x01"
    assert list(decoded.owned_partitions) == ([OwnedPartition("t", [0, 2])] if version >= 1 else [])
    assert decoded.generation_id == (5 if version >= 2 else -1)
    assert decoded.rack_id == ("rack" if version >= 3 else None)
    assert decode_subscribed_topics(blob) == ["t", "ü"]


def test_later_versions_are_read_as_the_latest_known() -> None:  # GC-30
    blob = b"\x00\x63" + encode_subscription(SUBSCRIPTION)[2:] + b"fields of the future"
    assert decode_subscription(blob) == SUBSCRIPTION
    assert decode_subscribed_topics(blob) == ["t", "ü"]


def test_assignments() -> None:  # GC-30
    assignment = ConsumerProtocolAssignment([AssignedPartition("t", [1, 0])], None)
    for version in range(4):
        blob = encode_assignment(assignment, version)
        assert blob == bytes((0, version)) + b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
        assert decode_assignment(blob) == assignment


@pytest.mark.parametrize(
    "blob", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x01abc"]
)
def test_malformed_blobs(blob: bytes) -> None:  # GC-30
    for decode in (decode_subscription, decode_assignment, decode_subscribed_topics):
        with pytest.raises(MalformedMessage):
            decode(blob)
