"""SCRAM computations (RFC 5802, RFC 7677) of client and broker. As in Kafka, passwords are used without SASLprep."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import NamedTuple

HASH_BY_MECHANISM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS = 4096
"""The fewest iterations that Kafka's clients and brokers accept."""


class Keys(NamedTuple):
    """The keys derived from a salted password. The broker stores only the last two."""

    client_key: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "Keys(…)"


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password. This is slow on purpose: it takes some milliseconds."""
    return hashlib.pbkdf2_hmac(HASH_BY_MECHANISM[mechanism], password.encode(), salt, iterations)


def keys_of(mechanism: str, salted: bytes) -> Keys:
    """Derives the keys from a salted password."""
    kind = HASH_BY_MECHANISM[mechanism]
    client_key = hmac.digest(salted, b"Client Key", kind)
    return Keys(client_key, hashlib.new(kind, client_key).digest(), hmac.digest(salted, b"Server Key", kind))


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
