"""OAUTHBEARER (RFC 7628): a token, with extensions (KIP-342)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

from groupkeeper.security.identity import Identity
from groupkeeper.security.mechanisms.mechanism import (
    BadToken,
    ClientConversation,
    ClientLogin,
    LoginFailed,
    LoginRefused,
    MechanismFailed,
    ServerConversation,
    ServerLogin,
    TokenSource,
    TokenValidator,
)

_SEPARATOR = "\x01"
_FIRST = (
    r"n,(?:a=(?P<authorization_id>(?:[^=,\x00\x01]|=2C|=3D)+))?,"
    r"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01)*)\x01"
)
_AUTH = r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)"


def client(login: ClientLogin) -> Callable[[], ClientConversation]:
    tokens, extensions = login.tokens()
    return partial(BearerClient, tokens, extensions)


def server(login: ServerLogin) -> Callable[[], ServerConversation]:
    return partial(BearerServer, login.tokens())


class BearerClient(ClientConversation):
    """Sends a token with `extensions` (KIP-342)."""

    def __init__(self, tokens: TokenSource, extensions: Mapping[str, str] = {}) -> None:
        self._tokens = tokens
        self._extensions = extensions
        self._refusal: str | None = None

    async def first(self) -> bytes:
        token = await self._tokens.current()
        if not token or not token.isascii() or any(sign <= " " for sign in token):
            raise MechanismFailed("the OAuth token is empty, or has characters that no token has")
        pairs = "".join(f"{name}={value}\x01" for name, value in self._extensions.items())
        return f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._refusal is not None:
            raise MechanismFailed(self._refusal)
        if not challenge:
            return None
        # RFC 7628, 3.2.3: a server refuses by a challenge, and reports the failure after the client's response.
        self._refusal = f"the broker refuses the token: {_status(challenge)}"
        return b"\x01"

    def refused(self) -> None:
        self._tokens.forget()


def _status(challenge: bytes) -> str:
    try:
        response = json.loads(challenge)
    except ValueError:
        return "no reason given"
    return str(response.get("status")) if isinstance(response, dict) else "no reason given"


class BearerServer(ServerConversation):
    def __init__(self, tokens: TokenValidator) -> None:
        self._tokens = tokens
        self._refusal = self._reason = ""

    async def answer(self, message: bytes) -> bytes:
        if message == b"\x01" and self._refusal:
            raise LoginRefused(self._refusal, self._reason)
        self._refusal = ""
        authorization_id, token = _first(message)
        try:
            subject = await self._tokens.subject_of(token)
        except BadToken as error:
            # The client replies with one byte, and then gets this text again as the error.
            self._reason = f"the token is refused: {error}"
            status = "insufficient_scope" if error.scope else "invalid_token"
            self._refusal = f'{{"status":"{status}"' + (f', "scope":"{error.scope}"' if error.scope else "") + "}"
            return self._refusal.encode()
        if authorization_id and authorization_id != subject.name:
            raise LoginRefused(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({subject.name})"
            )
        self.identity = Identity(f"User:{subject.name}", subject.expires_ms)
        return b""


def _first(message: bytes) -> tuple[str, str]:
    try:
        match = re.fullmatch(_FIRST, message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise LoginFailed("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
    auth = re.fullmatch(_AUTH, pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise LoginFailed("Invalid OAUTHBEARER client first message: it has no bearer token")
    return match["authorization_id"] or "", auth["token"]
