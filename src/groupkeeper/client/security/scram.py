"""SCRAM (RFC 5802, RFC 7677) as a conversation of bytes, without I/O.

As in Kafka, names and passwords are used without SASLprep, and there is no channel binding.
"""

from __future__ import annotations

import base64
import binascii
import hmac

from groupkeeper.client.security.mechanisms import MechanismFailed
from groupkeeper.security.scram import MIN_ITERATIONS, keys_of, salted_password, signature, xored

MAX_ITERATIONS = 1_000_000
"""More than this would only cost CPU time. Kafka itself stores 16,384 at most."""

_NO_CHANNEL_BINDING = "n,,"


class Scram:
    """Proves knowledge of the password without sending it, and demands the same proof from the server.

    ``extensions`` follow the nonce of the first message: Kafka's ``tokenauth=true`` for delegation tokens (KIP-48).
    """

    __slots__ = ("_bare", "_extensions", "_mechanism", "_nonce", "_password", "_server_signature", "_username")

    def __init__(
        self, mechanism: str, username: str, password: str, nonce: str, extensions: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._mechanism = mechanism
        self._username = username
        self._password = password
        self._nonce = nonce
        self._extensions = extensions
        self._bare = ""
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        name = self._username.replace("=", "=3D").replace(",", "=2C")
        extensions = "".join(f",{key}={value}" for key, value in self._extensions)
        self._bare = f"n={name},r={self._nonce}{extensions}"
        return (_NO_CHANNEL_BINDING + self._bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._server_signature is None:
            return self._prove(challenge)
        self._verify(challenge, self._server_signature)
        return None

    def _prove(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise MechanismFailed("the broker's SCRAM nonce does not continue the client's: the reply is not genuine")
        salt = _decoded(fields.get("s", ""))
        iterations = _iterations(fields.get("i", ""))
        keys = keys_of(self._mechanism, salted_password(self._mechanism, self._password, salt, iterations))
        channel = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        final = f"c={channel},r={nonce}"
        signed = f"{self._bare},{challenge.decode()},{final}".encode()
        proof = xored(keys.client_key, signature(self._mechanism, keys.stored_key, signed))
        self._server_signature = signature(self._mechanism, keys.server_key, signed)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, challenge: bytes, expected: bytes) -> None:
        fields = _fields(challenge)
        if "e" in fields:
            raise MechanismFailed(f"the broker refuses: {fields['e'][:200]}")
        if not hmac.compare_digest(_decoded(fields.get("v", "")), expected):
            raise MechanismFailed("the broker did not prove that it has the password: its SCRAM signature is wrong")


def _fields(message: bytes) -> dict[str, str]:
    """The attributes of a message; a mandatory extension (``m=``) is refused, as RFC 5802 demands."""
    try:
        pairs = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError:
        raise MechanismFailed("the broker's SCRAM reply is malformed") from None
    fields = {name: value for name, equals, value in pairs if equals}
    if len(fields) != len(pairs) or "m" in fields:
        raise MechanismFailed("the broker's SCRAM reply is malformed, or wants an unknown extension")
    return fields


def _decoded(text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise MechanismFailed("the broker's SCRAM reply is malformed: salt or signature")
    return decoded


def _iterations(text: str) -> int:
    iterations = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        limits = f"{MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
        raise MechanismFailed(f"the broker asks for {text[:12] or 'no'} SCRAM iterations: {limits}")
    return iterations
