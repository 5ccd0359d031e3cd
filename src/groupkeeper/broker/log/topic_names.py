"""The valid names of topics (Kafka 4.4.0 Topic)."""

from __future__ import annotations

from groupkeeper.protocol.errors import InvalidTopicException

MAX_NAME_LENGTH = 249
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def require_valid_name(name: str) -> None:
    """Raises `InvalidTopicException` with Kafka's text."""
    if not name:
        raise InvalidTopicException("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicException(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopicException(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        )
    if not _ALLOWED.issuperset(name):
        raise InvalidTopicException(
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
