"""SCRAM (RFC 5802, RFC 7677) on the broker's side, without I/O, and the credentials that it checks.

As in Kafka: names and passwords are taken without SASLprep, channel binding is not offered, names are ASCII.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from groupkeeper.broker.call import Identity
from groupkeeper.broker.security.conversation import LoginFailed, require_same
from groupkeeper.security.scram import (
    HASH_BY_MECHANISM,
    MIN_ITERATIONS,
    keys_of,
    new_salt,
    salted_password,
    signature,
    xored,
)

MAX_ITERATIONS = 16384

_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_BASE64 = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_NONCE = r"[\x21-+\--\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-+\--\x7f]+)*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(rf"(?P<signed>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})")


class Credential(NamedTuple):
    """The data that a broker stores for a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "Credential(…)"


class Login(NamedTuple):
    """A credential and its principal; the principal of a delegation token is its owner."""

    credential: Credential
    identity: Identity


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """The stored credential of a salted password."""
    keys = keys_of(mechanism, salted)
    return Credential(salt, keys.stored_key, keys.server_key, iterations)


def new_credential(mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> Credential:
    """A credential with a new salt."""
    salt = new_salt()
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def is_of(credential: Credential, mechanism: str, password: str) -> bool:
    """Whether a credential was made from a password."""
    salted = salted_password(mechanism, password, credential.salt, credential.iterations)
    fresh = credential_of(mechanism, salted, credential.salt, credential.iterations)
    return hmac.compare_digest(fresh.stored_key, credential.stored_key)


class Scram:
    """A login with SCRAM: client and broker prove to each other that they have the password."""

    def __init__(self, mechanism: str, look_up: Callable[[str, bool], Login | None], nonce: str) -> None:
        """`look_up` finds a user by name or, with True, a delegation token by its id."""
        self.identity: Identity | None = None
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
        answer = f"r={self._nonce},s={salt},i={login.credential.iterations}"
        self._signed_so_far = f"{match['bare']},{answer}"
        return answer.encode()

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


def _matched(pattern: re.Pattern[str], message: bytes, which: str) -> re.Match[str]:
    match = pattern.fullmatch(message.decode("latin-1"))
    if match is None:
        raise LoginFailed(f"the {which} SCRAM message is malformed")
    return match
