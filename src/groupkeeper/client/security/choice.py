"""The security that properties configure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupkeeper.client.errors import IllegalArgument
from groupkeeper.client.security.transport import Security, TlsSecurity

if TYPE_CHECKING:
    from groupkeeper.client.security.tokens import TokenProvider

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def security_of(properties: Mapping[str, str], token_provider: TokenProvider | None = None) -> Security:
    """The security that the properties configure. Reads stores. Raises IllegalArgument, UnsupportedSecurity."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise IllegalArgument(f"security.protocol={protocol} is not known: use one of {', '.join(PROTOCOLS)}")
    security = TlsSecurity(properties) if protocol.endswith("SSL") else Security()
    if not protocol.startswith("SASL_"):
        if token_provider is not None:
            raise IllegalArgument(f"a token_provider needs security.protocol=SASL_SSL, not {protocol}")
        return security
    from groupkeeper.client.security.sasl import sasl_security

    return sasl_security(security, properties, token_provider)
