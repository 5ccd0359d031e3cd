"""PLAIN (RFC 4616): user name and password in clear text, only for encrypted or trusted connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from groupkeeper.security.identity import Identity
from groupkeeper.security.mechanisms.mechanism import (
    ClientConversation,
    ClientLogin,
    LoginFailed,
    LoginRefused,
    MechanismFailed,
    ServerConversation,
    ServerLogin,
    require_same,
)


def client(login: ClientLogin) -> Callable[[], ClientConversation]:
    return partial(PlainClient, *login.needed())


def server(login: ServerLogin) -> Callable[[], ServerConversation]:
    return partial(PlainServer, login.passwords())


class PlainClient(ClientConversation):
    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password

    async def first(self) -> bytes:
        for name, text in (("username", self._username), ("password", self._password)):
            if "\0" in text:
                raise MechanismFailed(f"the {name} in sasl.jaas.config has a NUL character")
        return f"\0{self._username}\0{self._password}".encode()


class PlainServer(ServerConversation):
    def __init__(self, password_by_user: Mapping[str, str]) -> None:
        self._password_by_user = password_by_user

    async def answer(self, message: bytes) -> bytes:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise LoginFailed("the message is no UTF-8 text") from None
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
