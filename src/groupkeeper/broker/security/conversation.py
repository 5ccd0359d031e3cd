"""A login at the broker: an exchange of bytes, without I/O, that ends with an identity or an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from groupkeeper.broker.call import Identity


class LoginRefused(Exception):
    """The login fails, and the text is sent to the client. `reason` is for the log."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason or text


class LoginFailed(Exception):
    """The login fails; the text is only logged, as it may reveal that a user exists. It holds no secret."""

    @property
    def reason(self) -> str:
        """The text."""
        return str(self)


class Conversation(Protocol):
    """One login in progress.

    Attributes:
        identity: None until the login has succeeded.
    """

    identity: Identity | None

    async def answer(self, message: bytes) -> bytes:
        """The broker's reply to the client's message. Raises `LoginRefused`, `LoginFailed`."""


class Plain:
    """PLAIN (RFC 4616): user name and password in clear text."""

    def __init__(self, password_by_user: Mapping[str, str]) -> None:
        self.identity: Identity | None = None
        self._password_by_user = password_by_user

    async def answer(self, message: bytes) -> bytes:
        parts = _utf8(message).split("\0")
        if len(parts) != 3:
            raise LoginFailed(f"a PLAIN message has three parts, this one {len(parts)}")
        authorization_id, username, password = parts
        if not username or not password:
            raise LoginFailed("the username or the password of PLAIN is empty")
        if not self._is_right(username, password):
            raise LoginRefused("Authentication failed: Invalid username or password")
        require_same(authorization_id, username)
        self.identity = Identity(f"User:{username}")
        return b""

    def _is_right(self, username: str, password: str) -> bool:
        from hmac import compare_digest

        expected = self._password_by_user.get(username)
        # The check of an unknown user takes as long as that of a wrong password.
        is_same = compare_digest((expected or "").encode(), password.encode())
        return is_same and expected is not None


def require_same(authorization_id: str, username: str) -> None:
    """Checks that an authorization id is empty or the user's name. Raises `LoginRefused`."""
    if authorization_id and authorization_id != username:
        raise LoginRefused(
            "Authentication failed: Client requested an authorization id that is different from username"
        )


def _utf8(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise LoginFailed("the message is no UTF-8 text") from None
