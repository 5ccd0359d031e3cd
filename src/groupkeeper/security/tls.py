"""Applies Kafka's ssl.* properties to a TLS context of a client or broker: versions, cipher suites, trust, key."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from groupkeeper.security.errors import BadCredentials, UnsupportedCredentials
from groupkeeper.security.stores import StoreIdentity, own_identity, trusted_certificates

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_SWITCHED_OFF = {"TLSv1.1": ssl.OP_NO_TLSv1_1, "TLSv1.2": ssl.OP_NO_TLSv1_2}
_TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context to connect with. Reads the stores. Raises BadCredentials, UnsupportedCredentials."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    choose_versions(context, properties)
    choose_suites(context, properties)
    trusted = trusted_certificates(properties)
    if trusted is None:
        context.load_default_certs()
    else:
        trust(context, trusted)
    # As Java does: a certificate in the trust store is trusted even when it isn't a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    identity = own_identity(properties)
    if identity is not None:
        load_identity(context, identity)
    return context


def trust(context: ssl.SSLContext, trusted: str) -> None:
    """Makes the context trust these PEM certificates. Raises BadCredentials."""
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise BadCredentials(f"ssl.truststore: a certificate in it is malformed ({error.reason})") from None


def choose_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Sets the context's TLS versions from ssl.protocol and ssl.enabled.protocols. Raises BadCredentials."""
    protocol = properties.get("ssl.protocol", "TLS").strip()
    if protocol not in ("TLS", *_VERSIONS):
        raise BadCredentials(f"ssl.protocol={protocol} is not known: TLS, TLSv1.3 or TLSv1.2")
    text = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
    names = [name for name in re.split(r"[,\s]+", text) if name]
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        raise BadCredentials(f"ssl.enabled.protocols={text}: expected some of {', '.join(_VERSIONS)}")
    enabled = [name for name in _VERSIONS if name in names]
    context.minimum_version = _VERSIONS[enabled[0]]
    context.maximum_version = _VERSIONS[enabled[-1]]
    for name, option in _SWITCHED_OFF.items():
        if name not in enabled and _VERSIONS[enabled[0]] < _VERSIONS[name] < _VERSIONS[enabled[-1]]:
            context.options |= option


def choose_suites(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Sets the context's cipher suites from ssl.cipher.suites. Raises BadCredentials, UnsupportedCredentials."""
    names = [name for name in re.split(r"[,\s]+", properties.get("ssl.cipher.suites", "")) if name]
    if not names:
        return
    modern = [name for name in names if name in _TLS13_SUITES]
    others = [openssl_suite(name) for name in names if name not in _TLS13_SUITES]
    if others:
        try:
            context.set_ciphers(":".join(others))
        except ssl.SSLError:
            raise BadCredentials(f"ssl.cipher.suites={','.join(names)}: OpenSSL has none of the suites") from None
    # Python cannot select single suites of TLS 1.3, only turn TLS 1.3 on or off.
    if modern and 0 < len(modern) < len(_TLS13_SUITES):
        missing = ",".join(name for name in _TLS13_SUITES if name not in modern)
        raise UnsupportedCredentials(f"ssl.cipher.suites: TLS 1.3 takes all of its suites or none here: add {missing}")
    if not modern:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if not others:
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def openssl_suite(name: str) -> str:
    """OpenSSL's name for Java's: ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    exchange, found, cipher = name.removeprefix("TLS_").removeprefix("SSL_").partition("_WITH_")
    if not found:
        return name
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("3DES_EDE", "DES_CBC3")
    parts = [] if exchange == "RSA" else [exchange]
    return "-".join([*parts, cipher]).replace("_", "-")


_TOO_WEAK = {
    "CA_MD_TOO_WEAK": "a certificate is signed with a weak digest, SHA-1 or MD5 (CA_MD_TOO_WEAK)",
    "EE_KEY_TOO_SMALL": "the certificate's key is too short (EE_KEY_TOO_SMALL)",
    "CA_KEY_TOO_SMALL": "the key of a CA in the chain is too short (CA_KEY_TOO_SMALL)",
}
"""Explanations, by OpenSSL's reason, for valid certificates and keys that its security level refuses."""


def load_identity(context: ssl.SSLContext, identity: StoreIdentity) -> None:
    """Makes the context present this certificate to peers. Raises BadCredentials."""
    # Given a password, even an empty one, OpenSSL doesn't ask for one on the terminal.
    password = identity.password or ""
    with _file_of(identity.key + identity.chain) as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise BadCredentials("ssl.keystore: the private key and the first certificate do not match") from None
            if error.reason in _TOO_WEAK:
                raise BadCredentials(f"ssl.keystore: {_TOO_WEAK[error.reason]}, which OpenSSL refuses") from None
            hint = "ssl.key.password is wrong, or the key damaged" if identity.password else "the key is damaged"
            reason = f" ({error.reason})" if error.reason else ""
            raise BadCredentials(f"ssl.keystore: the private key cannot be used: {hint}{reason}") from None


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """A temporary file with the text, as OpenSSL reads keys from files only: in memory if possible, else private."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("key")
        path = f"/proc/self/fd/{descriptor}"
        is_on_disk = False
    else:
        import tempfile

        descriptor, path = tempfile.mkstemp()  # readable for its owner only
        is_on_disk = True
    try:
        with open(descriptor, "w", encoding="ascii", closefd=False) as file:
            file.write(text)
        yield path
    finally:
        os.close(descriptor)
        if is_on_disk:
            os.unlink(path)
