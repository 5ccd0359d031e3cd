"""SASL mechanisms as conversations of bytes, without I/O: PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from groupkeeper.base_error import GroupkeeperError


class MechanismFailed(GroupkeeperError):
    """The exchange failed: the peer's proof or message is wrong, or a credential cannot be encoded. The text holds no
    secret.
    """


class Conversation(Protocol):
    """One authentication in progress."""

    def first(self) -> bytes:
        """The client's first message."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The client's next message, None when the exchange is complete. Raises MechanismFailed."""


class Plain:
    """Sends user name and password in plain text: only for encrypted or trusted connections."""

    __slots__ = ("_password", "_username")

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password

    def first(self) -> bytes:
        for name, text in (("username", self._username), ("password", self._password)):
            if not text or "\0" in text:
                raise MechanismFailed(f"the {name} in sasl.jaas.config is empty or has a NUL character")
        return f"\0{self._username}\0{self._password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class OAuthBearer:
    """Sends a token with ``extensions`` (KIP-342)."""

    __slots__ = ("_extensions", "_refusal", "_token")

    def __init__(self, token: str, extensions: Mapping[str, str] = {}) -> None:
        self._token = token
        self._extensions = extensions
        self._refusal: str | None = None

    def first(self) -> bytes:
        if not self._token or not self._token.isascii() or any(sign <= " " for sign in self._token):
            raise MechanismFailed("the OAuth token is empty, or has characters that no token has")
        pairs = "".join(f"{name}={value}\x01" for name, value in self._extensions.items())
        return f"n,,\x01auth=Bearer {self._token}\x01{pairs}\x01".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._refusal is not None:
            raise MechanismFailed(self._refusal)
        if not challenge:
            return None
        # RFC 7628, 3.2.3: a server refuses by a challenge, and reports the failure after the client's answer.
        self._refusal = f"the broker refuses the token: {_status(challenge)}"
        return b"\x01"


def _status(challenge: bytes) -> str:
    try:
        answer = json.loads(challenge)
    except ValueError:
        return "no reason given"
    return str(answer.get("status")) if isinstance(answer, dict) else "no reason given"
