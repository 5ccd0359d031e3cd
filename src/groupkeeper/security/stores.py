"""Certificates and private keys in the forms that Kafka's properties name: PEM, PKCS12 and JKS."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.security import jks
from groupkeeper.security.errors import BadCredentials, UnsupportedCredentials

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN (?P<kind>[A-Z ]*PRIVATE KEY)-----.+?-----END (?P=kind)-----", re.DOTALL)

STORE_TYPES = ("JKS", "PKCS12", "PEM")


class StoreIdentity(NamedTuple):
    """A private key and its certificates (its own first), as PEM. `password` None: the key is not encrypted."""

    key: str
    chain: str
    password: str | None

    def __repr__(self) -> str:
        return "StoreIdentity(…)"


class _Source(NamedTuple):
    """The properties of one store. `prefix`: "ssl.truststore" or "ssl.keystore", for error texts."""

    prefix: str
    properties: Mapping[str, str]

    def value(self, name: str) -> str | None:
        return self.properties.get(f"{self.prefix}.{name}", "").strip() or None

    @property
    def type(self) -> str:
        text = (self.value("type") or "JKS").upper()
        if text not in STORE_TYPES:
            raise BadCredentials(f"{self.prefix}.type={text} is not known: use one of {', '.join(STORE_TYPES)}")
        return text

    @property
    def place(self) -> str:
        return f"{self.prefix}.location={self.value('location')}"

    def content(self) -> bytes:
        """The bytes of the file; raises BadCredentials."""
        path = self.value("location") or ""
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise BadCredentials(f"{self.place}: there is no such file") from None
        except IsADirectoryError:
            raise BadCredentials(f"{self.place} is a directory: name the file of the store") from None
        except OSError as error:
            reason = (error.strerror or "unreadable").lower()
            raise BadCredentials(f"{self.place} cannot be read: {reason}") from None

    def wrong_password(self, error: Exception) -> BadCredentials:
        return BadCredentials(f"{self.place}: {self.prefix}.password is wrong, or the store is damaged ({error})")


def trusted_certificates(properties: Mapping[str, str]) -> str | None:
    """The certificates to trust as PEM, None when the properties name none. Raises BadCredentials."""
    source = _Source("ssl.truststore", properties)
    text = source.value("certificates")
    if text is None and source.value("location") is None:
        return None
    if text is not None:
        _only_pem(source, "certificates")
        found = _CERTIFICATE.findall(_unfolded(text))
        place = "ssl.truststore.certificates"
    elif source.type == "PEM":
        _no_store_password(source)
        found = _CERTIFICATE.findall(source.content().decode("utf-8", "replace"))
        place = source.place
    else:
        found = [_pem("CERTIFICATE", each) for each in _store(source)[1]]
        place = source.place
    if not found:
        hint = "" if source.value("password") or source.type == "PEM" else ": ssl.truststore.password may be missing"
        raise BadCredentials(f"{place} has no trusted certificate{hint}")
    return "\n".join(found) + "\n"


def own_identity(properties: Mapping[str, str]) -> StoreIdentity | None:
    """The client's key and certificates, None when the properties name none. Raises BadCredentials."""
    source = _Source("ssl.keystore", properties)
    password = properties.get("ssl.key.password", "").strip() or None
    key, chain = source.value("key"), source.value("certificate.chain")
    if key is None and chain is None and source.value("location") is None:
        return None
    if key is not None or chain is not None:
        if key is None or chain is None:
            raise BadCredentials("ssl.keystore.key and ssl.keystore.certificate.chain are needed together")
        _only_pem(source, "key")
        return _pem_identity("ssl.keystore.key", _unfolded(key) + "\n" + _unfolded(chain), password)
    if source.type == "PEM":
        _no_store_password(source)
        return _pem_identity(source.place, source.content().decode("utf-8", "replace"), password)
    identity, _ = _store(source, key_password=password)
    if identity is None:
        raise BadCredentials(f"{source.place} has no private key: is it a trust store?")
    return identity


def _pem_identity(place: str, text: str, password: str | None) -> StoreIdentity:
    key = _KEY.search(text)
    chain = _CERTIFICATE.findall(text)
    if key is None:
        raise BadCredentials(f"{place}: there is no PEM private key (-----BEGIN PRIVATE KEY-----)")
    if not chain:
        raise BadCredentials(f"{place}: the private key has no PEM certificate with it (-----BEGIN CERTIFICATE-----)")
    is_encrypted = "ENCRYPTED" in key[0]
    if is_encrypted and password is None:
        raise BadCredentials(f"{place}: the private key is encrypted: set ssl.key.password")
    return StoreIdentity(key[0] + "\n", "\n".join(chain) + "\n", password if is_encrypted else None)


def _unfolded(text: str) -> str:
    """Restores the line breaks of a PEM that a properties file has on one line, with blanks instead."""

    def fold(match: re.Match[str]) -> str:
        return f"{match[1]}\n" + "\n".join(match[2].split()) + f"\n{match[3]}"

    return re.sub(r"(-----BEGIN [A-Z ]+-----)(.*?)(-----END [A-Z ]+-----)", fold, text, flags=re.DOTALL)


def _only_pem(source: _Source, name: str) -> None:
    if source.type != "PEM":
        raise BadCredentials(f"{source.prefix}.{name} holds PEM: set {source.prefix}.type=PEM as well")
    if source.value("location") is not None:
        raise BadCredentials(f"{source.prefix}.{name} and {source.prefix}.location exclude each other: remove one")
    _no_store_password(source)


def _no_store_password(source: _Source) -> None:
    if source.value("password") is not None:
        way_out = "a key's is ssl.key.password" if source.prefix == "ssl.keystore" else "remove it"
        raise BadCredentials(f"{source.prefix}.password: a PEM store has no password: {way_out}")


def _store(source: _Source, key_password: str | None = None) -> tuple[StoreIdentity | None, list[bytes]]:
    """The first key and the trusted certificates. As in Java, the content decides whether it is JKS or PKCS12."""
    content = source.content()
    password = source.value("password")
    if content.startswith(jks.MAGIC):
        return _from_jks(source, content, password, key_password)
    if content.startswith(jks.JCEKS_MAGIC):
        raise UnsupportedCredentials(
            f"{source.place} is a JCEKS store: convert it with keytool -importkeystore to PKCS12"
        )
    if content.startswith(b"\x30"):
        return _from_pkcs12(source, content, password)
    if b"-----BEGIN" in content:
        raise BadCredentials(f"{source.place} is PEM, not {source.type}: set {source.prefix}.type=PEM")
    raise BadCredentials(f"{source.place} is neither a JKS nor a PKCS12 store")


def _from_jks(
    source: _Source, content: bytes, password: str | None, key_password: str | None
) -> tuple[StoreIdentity | None, list[bytes]]:
    try:
        store = jks.read_jks(content, password)
    except jks.WrongPassword as error:
        raise source.wrong_password(error) from None
    except jks.BadStore as error:
        raise BadCredentials(f"{source.place} is damaged: {error}") from None
    if source.prefix != "ssl.keystore" or not store.keys:
        return None, list(store.certificates)
    if password is None:
        raise BadCredentials(f"{source.place}: set {source.prefix}.password")
    entry = store.keys[0]
    try:
        key = jks.unprotected_key(entry.protected_key, key_password or password)
    except jks.WrongPassword:
        raise BadCredentials(
            f"{source.place}: ssl.key.password (default: {source.prefix}.password) does not fit the key {entry.alias}"
        ) from None
    except jks.BadStore as error:
        raise BadCredentials(f"{source.place}, key {entry.alias}: {error}") from None
    chain = "".join(_pem("CERTIFICATE", each) + "\n" for each in entry.chain)
    return StoreIdentity(_pem("PRIVATE KEY", key) + "\n", chain, None), list(store.certificates)


def _from_pkcs12(source: _Source, content: bytes, password: str | None) -> tuple[StoreIdentity | None, list[bytes]]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise UnsupportedCredentials(
            f"{source.place} is a PKCS12 store, and reading it needs a library: the extra 'security' "
            "(in a checkout: pip install '.[security]')"
        ) from None
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        if password is None:
            raise BadCredentials(f"{source.place}: set {source.prefix}.password") from None
        raise source.wrong_password(error) from None
    others = [each.certificate.public_bytes(Encoding.DER) for each in store.additional_certs]
    if store.key is None or store.cert is None:
        return None, others
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    own = store.cert.certificate
    by_subject = {each.certificate.subject: each.certificate for each in store.additional_certs}
    chain = [own]
    # Add only the issuer of the last certificate: the store may also hold unrelated trusted certificates.
    while (issuer := by_subject.get(chain[-1].issuer)) is not None and issuer not in chain:
        chain.append(issuer)
    return StoreIdentity(key, "".join(each.public_bytes(Encoding.PEM).decode() for each in chain), None), others


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"
