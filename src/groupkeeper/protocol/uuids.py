"""Kafka's text form of its ids: URL-safe base64 without padding."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode


def uuid_text(uuid: bytes) -> str:
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_of(text: str) -> bytes:
    """The 16 bytes of Kafka's text form. Raises ValueError."""
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is no uuid")
    return uuid
