"""The broker's side of SASL for the scripted broker: mechanisms that check what the client says."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping

from tests.unit.client.scripted_broker import HangUp, ScriptedBroker

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

Step = Callable[[bytes], tuple[bytes, bool]]
"""One token of the client: the answer, and whether the client is authenticated. Raises Refused."""

Start = Callable[[], Step]
"""Begins one authentication."""

SALT = b"salt for tests"


class Refused(Exception):
    """The credentials are not right."""


def plain(username: str, password: str) -> Start:
    def step(token: bytes) -> tuple[bytes, bool]:
        if token != f"\0{username}\0{password}".encode():
            raise Refused("Authentication failed: Invalid username or password")
        return b"", True

    return lambda: step


def scram(hash_name: str, username: str, password: str, *, iterations: int = 4096, knows: str | None = None) -> Start:
    """``knows``: the password that the server signs with, if it is an impostor."""

    def start() -> Step:
        messages: list[str] = []
        return lambda token: step(messages, token)

    def step(messages: list[str], token: bytes) -> tuple[bytes, bool]:
        text = token.decode()
        if not messages:
            bare = text.removeprefix("n,,")
            name, nonce = bare.split(",")[:2]
            if name != f"n={username}":
                raise Refused("Authentication failed during authentication due to invalid credentials")
            first = f"{nonce}server,s={base64.b64encode(SALT).decode()},i={iterations}"
            messages.extend([bare, first])
            return first.encode(), False
        final, _, proof = text.rpartition(",p=")
        signed = ",".join([*messages, final]).encode()

        def key(name: bytes, secret: str) -> bytes:
            return hmac.digest(hashlib.pbkdf2_hmac(hash_name, secret.encode(), SALT, iterations), name, hash_name)

        client_key = key(b"Client Key", password)
        signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != base64.b64decode(proof):
            raise Refused("Authentication failed during authentication due to invalid credentials with SASL mechanism")
        server_signature = hmac.digest(key(b"Server Key", knows or password), signed, hash_name)
        return b"v=" + base64.b64encode(server_signature), True

    return start


def bearer(*accepted: str) -> Start:
    def start() -> Step:
        refused: list[str] = []
        return lambda token: step(refused, token)

    def step(refused: list[str], token: bytes) -> tuple[bytes, bool]:
        if refused and token == b"\x01":
            raise Refused(refused.pop())
        said = token.decode().split("\x01")[1].removeprefix("auth=Bearer ")
        if said not in accepted:
            refused.append('{"status":"invalid_token"}')
            return b'{"status":"invalid_token"}', False
        return b"", True

    return start


class SaslBroker(ScriptedBroker):
    """Answers ListGroups with one group, to clients that have authenticated only.

    ``lifetime_ms`` is the session's, 0 for ever. ``versions`` narrows the SASL requests.
    """

    def __init__(
        self,
        starts: Mapping[str, Start],
        *,
        lifetime_ms: int = 0,
        versions: Mapping[str, tuple[int, int] | None] | None = None,
        handshake_error: int = 0,
        **options: object,
    ) -> None:
        handlers = {
            "SaslHandshake": self._answer_handshake,
            "SaslAuthenticate": self._answer_authenticate,
            "ListGroups": self._answer_list_groups,
        }
        super().__init__(handlers=handlers, ranges=versions, answer_token=self._step, **options)  # type: ignore[arg-type]
        self.authentications = 0
        self._starts = starts
        self._steps: dict[int, Step] = {}
        self._lifetime_ms = lifetime_ms
        self._handshake_error = handshake_error
        self._authenticated: set[int] = set()
        metadata = self.handlers["Metadata"]

        def guarded(message: RootMessage, version: int) -> object:
            self._check()
            return metadata(message, version)

        self.handlers["Metadata"] = guarded  # type: ignore[assignment]

    def _check(self) -> None:
        if self.seen[-1].connection not in self._authenticated:
            raise HangUp

    def _answer_handshake(self, message: m.SaslHandshakeRequest, version: int) -> m.SaslHandshakeResponse:
        offered = list(self._starts)
        if message.mechanism in offered:
            self._steps[self.seen[-1].connection] = self._starts[message.mechanism]()
        if self._handshake_error:
            return m.SaslHandshakeResponse(self._handshake_error)
        return m.SaslHandshakeResponse(0 if message.mechanism in offered else 33, offered)

    def _step(self, token: bytes) -> tuple[bytes, bool]:
        """A token in a bare frame: refusing is hanging up."""
        try:
            answer, is_done = self._steps[self.seen[-1].connection](token)
        except Refused:
            raise HangUp from None
        if is_done:
            self._done()
        return answer, is_done

    def _done(self) -> None:
        self.authentications += 1
        self._authenticated.add(self.seen[-1].connection)

    def _answer_authenticate(self, message: m.SaslAuthenticateRequest, version: int) -> m.SaslAuthenticateResponse:
        try:
            answer, is_done = self._steps[self.seen[-1].connection](message.auth_bytes)
        except Refused as refusal:
            return m.SaslAuthenticateResponse(58, str(refusal))
        if is_done:
            self._done()
        return m.SaslAuthenticateResponse(0, None, answer, self._lifetime_ms if version >= 1 else 0)

    def _answer_list_groups(self, message: RootMessage, version: int) -> m.ListGroupsResponse:
        self._check()
        return m.ListGroupsResponse(groups=[m.ListedGroup("g")])
