"""Reads Java's own key store format (JKS) from bytes. No maintained library does; the format is small, frozen since
1998, and needs SHA-1 only. Its encryption of keys is weak, so stores are never written.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"

_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")  # the object id 1.3.6.1.4.1.42.2.17.1.1, encoded
_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20


class BadStore(ValueError):
    """The bytes are not a JKS store, or the store is damaged."""


class WrongPassword(ValueError):
    """The password of the store, or of its key, is wrong."""


class KeyEntry(NamedTuple):
    """A private key. `protected_key` is encrypted; `chain` has DER certificates, the key's own first."""

    alias: str
    protected_key: bytes
    chain: tuple[bytes, ...]


class JksStore(NamedTuple):
    """The content of a store. `certificates`: the trusted ones, DER."""

    keys: tuple[KeyEntry, ...]
    certificates: tuple[bytes, ...]


def read_jks(content: bytes, password: str | None) -> JksStore:
    """The entries of a store. Without a password its checksum isn't verified. Raises BadStore, WrongPassword."""
    if content[:4] != MAGIC:
        raise BadStore("not a JKS store")
    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _WHITENER + content[:-_DIGEST_BYTES], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, content[-_DIGEST_BYTES:]):
            raise WrongPassword("the password is wrong, or the store damaged")
    reader = _StoreReader(content[:-_DIGEST_BYTES], 4)
    version, count = reader.integer(4), reader.integer(4)
    if version not in (1, 2):
        raise BadStore(f"JKS version {version} is not known")
    keys: list[KeyEntry] = []
    certificates: list[bytes] = []
    for _ in range(count):
        tag, alias = reader.integer(4), reader.text()
        reader.take(8)  # when the entry was made
        if tag == 1:
            key = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.integer(4)))
            keys.append(KeyEntry(alias, key, chain))
        elif tag == 2:
            certificates.append(reader.certificate(version))
        else:
            raise BadStore(f"entry type {tag} is not known")
    return JksStore(tuple(keys), tuple(certificates))


def unprotected_key(protected: bytes, password: str) -> bytes:
    """The private key (PKCS #8, DER) of an entry. Raises BadStore, WrongPassword."""
    content = _octet_string(protected)
    salt, middle, check = content[:20], content[20:-20], content[-20:]
    secret = _utf16(password)
    plain = bytearray()
    block = salt
    while len(plain) < len(middle):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        part = middle[len(plain) : len(plain) + _DIGEST_BYTES]
        plain += bytes(a ^ b for a, b in zip(part, block, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise WrongPassword("the password of the key is wrong")
    return bytes(plain)


def _octet_string(protected: bytes) -> bytes:
    """The encrypted bytes in `SEQUENCE { algorithm, OCTET STRING }`."""
    reader = _StoreReader(protected, 0)
    outer = _StoreReader(reader.element(0x30), 0)
    if not outer.element(0x30).startswith(_KEY_PROTECTOR):
        raise BadStore("the key is protected in a way that is not JKS's")
    content = outer.element(0x04)
    if len(content) < 2 * _DIGEST_BYTES:
        raise BadStore("the key is cut off")
    return content


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


class _StoreReader:
    """Reads values from the bytes of a store. Raises BadStore when a value exceeds them."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._content):
            raise BadStore("the store is cut off")
        taken = self._content[self._position : end]
        self._position = end
        return taken

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self) -> bytes:
        return self.take(self.integer(4))

    def text(self) -> str:
        return self.take(self.integer(2)).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version == 2 and (kind := self.text()) != "X.509":
            raise BadStore(f"certificates of type {kind} are not known")
        return self.block()

    def element(self, tag: int) -> bytes:
        """The content of a DER element."""
        if self.integer(1) != tag:
            raise BadStore("the key is not in the form it should be in")
        size = self.integer(1)
        if size & 0x80:
            size = self.integer(size & 0x7F)
        return self.take(size)
