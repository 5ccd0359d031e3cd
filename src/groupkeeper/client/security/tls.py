"""TLS as Kafka's ssl.* properties ask for it: the context to connect with."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from groupkeeper.client.errors import IllegalArgument, UnsupportedSecurity
from groupkeeper.client.security.refusals import reads_credentials
from groupkeeper.security.stores import own_identity, trusted_certificates
from groupkeeper.security.tls import choose_suites, choose_versions, load_identity, trust


@reads_credentials()
def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context for client connections. Reads the stores. Raises IllegalArgument, UnsupportedSecurity."""
    if properties.get("ssl.engine.factory.class", "").strip():
        raise UnsupportedSecurity("ssl.engine.factory.class names Java code, which cannot run here: use stores instead")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip()
    if algorithm.lower() not in ("https", ""):
        raise IllegalArgument(f"ssl.endpoint.identification.algorithm={algorithm}: 'https', or empty for no check")
    context.check_hostname = bool(algorithm)
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
