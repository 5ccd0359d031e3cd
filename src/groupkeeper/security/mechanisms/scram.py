"""SCRAM (RFC 5802, RFC 7677): client and broker prove to each other that they have the password, without sending it.

As in Kafka: names and passwords are taken without SASLprep, channel binding is not offered, names are ASCII.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Callable

from groupkeeper.security.mechanisms.mechanism import (
    ClientConversation,
    ClientLogin,
    Credential,
    Login,
    LoginFailed,
    MechanismFailed,
    ServerConversation,
    ServerLogin,
    require_same,
)

HASH_BY_MECHANISM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Their places, from 1 on, are codes of messages."""
MIN_ITERATIONS = 4096
"""The fewest iterations that Kafka's clients and brokers accept."""
MAX_STORED_ITERATIONS = 16384
"""The most that Kafka's brokers store."""
MAX_ITERATIONS = 1_000_000
"""The most that our client accepts. More would only cost CPU time."""

_NO_CHANNEL_BINDING = "n,,"
_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_BASE64 = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_NONCE = r"[\x21-+\--\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-+\--\x7f]+)*"
_FIRST = (
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = rf"(?P<signed>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"


def client(login: ClientLogin) -> Callable[[], ClientConversation]:
    username, password = login.needed()
    # The user name and password of a delegation token (KIP-48) are its id and its secret.
    extensions = (("tokenauth", "true"),) if login.option("tokenauth").lower() == "true" else ()
    return lambda: ScramClient(login.mechanism.name, username, password, new_nonce(), extensions)


def server(login: ServerLogin) -> Callable[[], ServerConversation]:
    return lambda: ScramServer(login.mechanism.name, login.find, new_nonce())


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password. This is slow on purpose: it takes some milliseconds."""
    return hashlib.pbkdf2_hmac(HASH_BY_MECHANISM[mechanism], password.encode(), salt, iterations)


def keys_of(mechanism: str, salted: bytes) -> tuple[bytes, bytes, bytes]:
    """Client key, stored key and server key of a salted password. A broker stores only the last two."""
    kind = HASH_BY_MECHANISM[mechanism]
    client_key = hmac.digest(salted, b"Client Key", kind)
    return client_key, hashlib.new(kind, client_key).digest(), hmac.digest(salted, b"Server Key", kind)


def signature(mechanism: str, key: bytes, signed: bytes) -> bytes:
    """The HMAC of a login's messages with a key."""
    return hmac.digest(key, signed, HASH_BY_MECHANISM[mechanism])


def xored(one: bytes, other: bytes) -> bytes:
    """The XOR of two byte strings of the same length: key and signature give the proof, proof and signature the key."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def new_salt() -> bytes:
    """A salt of 192 random bits."""
    return os.urandom(24)


def new_nonce() -> str:
    """144 random bits, printable and without commas."""
    return base64.urlsafe_b64encode(os.urandom(18)).decode()


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """The credential of a salted password."""
    _, stored_key, server_key = keys_of(mechanism, salted)
    return Credential(salt, stored_key, server_key, iterations)


def new_credential(
    mechanism: str, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> Credential:
    """The credential of a password; `salt` None: a new one."""
    salt = new_salt() if salt is None else salt
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


class ScramClient(ClientConversation):
    """Proves knowledge of the password, and demands the same proof from the broker.

    `extensions` follow the nonce of the first message: Kafka's `tokenauth=true` for delegation tokens (KIP-48).
    """

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

    async def first(self) -> bytes:
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
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        client_key, stored_key, server_key = keys_of(self._mechanism, salted)
        channel = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        final = f"c={channel},r={nonce}"
        signed = f"{self._bare},{challenge.decode()},{final}".encode()
        proof = xored(client_key, signature(self._mechanism, stored_key, signed))
        self._server_signature = signature(self._mechanism, server_key, signed)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _verify(self, challenge: bytes, expected: bytes) -> None:
        fields = _fields(challenge)
        if "e" in fields:
            raise MechanismFailed(f"the broker refuses: {fields['e'][:200]}")
        if not hmac.compare_digest(_decoded(fields.get("v", "")), expected):
            raise MechanismFailed("the broker did not prove that it has the password: its SCRAM signature is wrong")


def _fields(message: bytes) -> dict[str, str]:
    """The attributes of a message; a mandatory extension (`m=`) is refused, as RFC 5802 demands."""
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


class ScramServer(ServerConversation):
    def __init__(self, mechanism: str, look_up: Callable[[str, bool], Login | None], nonce: str) -> None:
        """`look_up` finds a user by name or, with True, a delegation token by its id."""
        self._mechanism = mechanism
        self._look_up = look_up
        self._nonce = nonce
        self._login: Login | None = None
        self._header = b""
        self._signed_so_far = ""

    async def answer(self, message: bytes) -> bytes:
        if self.identity is not None:
            raise LoginFailed("the SCRAM login is over")
        if self._login is None:
            return self._first(message)
        return self._final(message, self._login)

    def _first(self, message: bytes) -> bytes:
        match = _matched(_FIRST, message, "first")
        extensions = dict(part.partition("=")[::2] for part in match["extensions"].split(",") if part)
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        is_token = extensions.get("tokenauth", "").lower() == "true"
        login = self._look_up(name, is_token)
        if login is None:
            raise LoginFailed(f"there is no such {'delegation token' if is_token else 'user'}")
        authorization_id = (match["authorization_id"] or "").replace("=2C", ",").replace("=3D", "=")
        require_same(authorization_id, name)
        self._login = login
        self._header = match["header"].encode()
        self._nonce = match["nonce"] + self._nonce
        salt = base64.b64encode(login.credential.salt).decode()
        response = f"r={self._nonce},s={salt},i={login.credential.iterations}"
        self._signed_so_far = f"{match['bare']},{response}"
        return response.encode()

    def _final(self, message: bytes, login: Login) -> bytes:
        match = _matched(_FINAL, message, "final")
        if not hmac.compare_digest(match["nonce"].encode(), self._nonce.encode()):
            raise LoginFailed("the nonce of the final SCRAM message is not the one of this login")
        if base64.b64decode(match["channel"]) != self._header:
            raise LoginFailed("the final SCRAM message is bound to another channel than the first")
        credential = login.credential
        signed = f"{self._signed_so_far},{match['signed']}".encode()
        signed_by_client = signature(self._mechanism, credential.stored_key, signed)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signed_by_client):
            raise LoginFailed("the SCRAM proof has the wrong length")
        client_key = xored(proof, signed_by_client)
        stored_key = hashlib.new(HASH_BY_MECHANISM[self._mechanism], client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise LoginFailed("the SCRAM proof is wrong")
        self.identity = login.identity
        return b"v=" + base64.b64encode(signature(self._mechanism, credential.server_key, signed))


def _matched(pattern: str, message: bytes, which: str) -> re.Match[str]:
    match = re.fullmatch(pattern, message.decode("latin-1"))
    if match is None:
        raise LoginFailed(f"the {which} SCRAM message is malformed")
    return match
