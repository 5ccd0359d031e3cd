"""The blobs of subscriptions and assignments that members of classic groups exchange through the coordinator.

A blob is an INT16 version and the struct in that version. Blobs of a later version than the schemas are read in the
latest known version, as every version only adds fields at the end.
"""

from __future__ import annotations

from typing import TypeVar

from groupkeeper.protocol.codec import MalformedMessage, decode_int16, decode_prefix, encode_behind
from groupkeeper.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from groupkeeper.protocol.primitives import RootMessage

__all__ = [
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "decode_assignment",
    "decode_subscribed_topics",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
]

PROTOCOL_TYPE = "consumer"
"""The protocol type of groups whose members exchange these blobs."""

M = TypeVar("M", bound=RootMessage)


def encode_subscription(
    subscription: ConsumerProtocolSubscription, version: int = ConsumerProtocolSubscription.MAX_VERSION
) -> bytes:
    """The blob in `version`; fields that this version doesn't have are left out. Raises UnsupportedMessageVersion,
    UnsupportedField.
    """
    return encode_behind(version, subscription, version)


def decode_subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. Raises MalformedMessage."""
    return _decode(ConsumerProtocolSubscription, blob)


def decode_subscribed_topics(blob: bytes) -> list[str]:
    """Only the topics, read from the part that all versions share; any bytes may follow. Raises MalformedMessage."""
    _version(blob)
    return list(decode_prefix(ConsumerProtocolSubscription, blob, 0, 2)[0].topics)


def encode_assignment(
    assignment: ConsumerProtocolAssignment, version: int = ConsumerProtocolAssignment.MAX_VERSION
) -> bytes:
    """The blob in `version`. Raises UnsupportedMessageVersion, UnsupportedField."""
    return encode_behind(version, assignment, version)


def decode_assignment(blob: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. Raises MalformedMessage."""
    return _decode(ConsumerProtocolAssignment, blob)


def _decode(cls: type[M], blob: bytes) -> M:
    return decode_prefix(cls, blob, min(_version(blob), cls.MAX_VERSION), 2)[0]


def _version(blob: bytes) -> int:
    version = decode_int16(blob, "blob")
    if version < 0:
        raise MalformedMessage(f"blob of version {version}")
    return version
