"""TLS as configured by Kafka's ssl.* properties: the context to connect with."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from groupkeeper.client.errors import IllegalArgument, UnsupportedSecurity
from groupkeeper.security.errors import BadCredentials, UnsupportedCredentials
from groupkeeper.security.tls import client_context


@contextmanager
def reads_credentials() -> Iterator[None]:
    """Converts credential errors to IllegalArgument or UnsupportedSecurity; also usable as a decorator."""
    try:
        yield
    except UnsupportedCredentials as error:
        raise UnsupportedSecurity(str(error)) from None
    except BadCredentials as error:
        raise IllegalArgument(str(error)) from None


@reads_credentials()
def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context for client connections. Reads the stores. Raises IllegalArgument, UnsupportedSecurity."""
    if properties.get("ssl.engine.factory.class", "").strip():
        raise UnsupportedSecurity("ssl.engine.factory.class names Java code, which cannot run here: use stores instead")
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip()
    if algorithm.lower() not in ("https", ""):
        raise IllegalArgument(f"ssl.endpoint.identification.algorithm={algorithm}: 'https', or empty for no check")
    context = client_context(properties)
    context.check_hostname = bool(algorithm)
    return context
