"""Bytes ⇄ messages: the checked entry points to the generated codecs."""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol.primitives import RootMessage, UnsupportedField, UnsupportedMessageVersion

M = TypeVar("M", bound=RootMessage)
_INT16: Final = struct.Struct(">h")

__all__ = [
    "MalformedMessage",
    "UnsupportedField",
    "UnsupportedMessageVersion",
    "decode",
    "decode_int16",
    "decode_prefix",
    "decode_value",
    "encode",
    "encode_behind",
    "encode_into",
]


def decode(cls: type[M], buf: bytes, version: int, pos: int = 0) -> M:
    """The message that fills `buf` from `pos` to its end.

    Raises MalformedMessage for anything else, UnsupportedMessageVersion for a version outside the schemas.
    """
    message, end = decode_prefix(cls, buf, version, pos)
    if end != len(buf):
        raise MalformedMessage(f"{len(buf) - end} bytes behind {cls.__name__} version {version}")
    return message


def decode_prefix(cls: type[M], buf: bytes, version: int, pos: int = 0) -> tuple[M, int]:
    """As `decode`, but other bytes may follow: returns the message and the position after it."""
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedMessageVersion(
            f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
        )
    try:
        message, end = cls.read(buf, pos, version)
    except (IndexError, struct.error, UnicodeDecodeError, MalformedMessage) as error:
        raise MalformedMessage(f"{cls.__name__} version {version}: {_why(error)}") from error
    if end > len(buf):
        raise MalformedMessage(f"{cls.__name__} version {version} runs {end - len(buf)} bytes past the end")
    return message, end


def decode_int16(buf: bytes, what: str) -> int:
    """The number that `buf` begins with: the type of a record's key, the version of its value. `what`: names `buf` in
    the text of MalformedMessage.
    """
    try:
        return int(_INT16.unpack_from(buf)[0])
    except struct.error as error:
        raise MalformedMessage(f"{what} of {len(buf)} bytes") from error


def decode_value(cls: type[M], value: bytes) -> M:
    """The value of a record in an internal topic, in the version that it begins with. Bytes after it are ignored, as in
    Apache Kafka. Raises MalformedMessage, also for a version that no schema describes.
    """
    version = decode_int16(value, "value")
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise MalformedMessage(f"{cls.__name__} has no version {version}")
    return decode_prefix(cls, value, version, 2)[0]


def _why(error: Exception) -> str:
    """The reason of a decoding failure in terms of the format, not of Python's functions."""
    if isinstance(error, UnicodeDecodeError):
        return "a text is not UTF-8"
    return str(error) if isinstance(error, MalformedMessage) else "it ends before its last field"


def encode(message: RootMessage, version: int) -> bytes:
    """The bytes of `message` in `version`.

    Raises UnsupportedField when that version cannot carry a value (unless the schema lets it be ignored) or a value
    does not fit its field, UnsupportedMessageVersion for a version outside the schemas.
    """
    out = bytearray()
    encode_into(out, message, version)
    return bytes(out)


def encode_behind(number: int, message: RootMessage, version: int) -> bytes:
    """As `encode`, behind an INT16: the type of a key, or the version of a value."""
    out = bytearray(_INT16.pack(number))
    encode_into(out, message, version)
    return bytes(out)


def encode_into(out: bytearray, message: RootMessage, version: int) -> None:
    """Appends the bytes of `message` to `out`; on an error `out` may hold a part of them."""
    if not message.MIN_VERSION <= version <= message.MAX_VERSION:
        raise UnsupportedMessageVersion(
            f"{type(message).__name__} has versions {message.MIN_VERSION} to {message.MAX_VERSION}, not {version}"
        )
    try:
        message.write(out, version)
    except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise UnsupportedField(f"{type(message).__name__} version {version}: {error}") from error
