"""Bytes ⇄ messages: the checked entry points to the generated codecs."""

from __future__ import annotations

import struct
from typing import TypeVar

from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol.primitives import RootMessage, UnsupportedField, UnsupportedMessageVersion

M = TypeVar("M", bound=RootMessage)

__all__ = [
    "MalformedMessage",
    "UnsupportedField",
    "UnsupportedMessageVersion",
    "decode",
    "decode_prefix",
    "encode",
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
