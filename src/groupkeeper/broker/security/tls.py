"""TLS of a listener: the context for its new connections."""

from __future__ import annotations

import os
import ssl

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.security.properties import ListenerProperties
from groupkeeper.broker.settings.config import Config
from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.stores import own_identity, trusted_certificates
from groupkeeper.security.tls import choose_suites, choose_versions, load_identity, trust

_VERIFICATION = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_FILES = ("ssl.keystore.location", "ssl.truststore.location")

Stamp = tuple[tuple[str, int, int, int], ...]
"""Path, inode, size and modification time in ns of each file; zeros if it cannot be read."""


def server_context(properties: ListenerProperties, protocol: str) -> ssl.SSLContext:
    """The context of a listener, from its stores. Raises `InvalidSetting`."""
    texts = properties.tls()
    if texts.get("ssl.engine.factory.class", "").strip():
        raise InvalidSetting("ssl.engine.factory.class names Java code, which cannot run here: use stores instead")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        choose_versions(context, texts)
        choose_suites(context, texts)
        identity = own_identity(texts)
        if identity is None:
            raise BadCredentials(
                "TLS needs a certificate: set ssl.keystore.location, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain (groupkeeper broker --tls makes one)"
            )
        load_identity(context, identity)
        context.verify_mode = _VERIFICATION[_client_auth(properties, protocol)]
        if context.verify_mode is not ssl.CERT_NONE:
            trusted = trusted_certificates(texts)
            if trusted is None:
                context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            else:
                trust(context, trusted)
            # As Java does: a certificate in the trust store is trusted even when it isn't a root.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    except BadCredentials as error:
        raise InvalidSetting(f"listener {properties.listener}: {error}") from None
    return context


def _client_auth(properties: ListenerProperties, protocol: str) -> str:
    name = Config.ssl_client_auth.name
    if protocol == "SASL_SSL" and properties.name_of(name) == name:
        return "none"  # as in Kafka, the setting for all listeners does not apply to listeners with SASL (KIP-684)
    return properties.value(Config.ssl_client_auth)


def stamp_of(properties: ListenerProperties) -> Stamp:
    """A value that changes whenever a store's file changes."""
    texts = properties.tls()
    stamps = []
    for path in (texts[name].strip() for name in _FILES if name in texts):
        try:
            found = os.stat(path)
        except OSError:
            stamps.append((path, 0, 0, 0))
        else:
            stamps.append((path, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)
