"""How a connection is secured: the seam for TLS and SASL. So far only PLAINTEXT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupkeeper.client.errors import UnsupportedSecurity

if TYPE_CHECKING:
    import ssl

    from groupkeeper.client.connection import Connection


class Security:
    """PLAINTEXT: no encryption, no authentication. Others override both methods."""

    def tls(self) -> ssl.SSLContext | None:
        """The context to connect with, None for a connection without TLS."""
        return None

    async def authenticate(self, connection: Connection, timeout_s: float) -> None:
        """Called on every new connection, after ApiVersions and before any other request."""


def security_of(properties: Mapping[str, str]) -> Security:
    """The security that the properties ask for; raises UnsupportedSecurity."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol != "PLAINTEXT":
        raise UnsupportedSecurity(
            f"security.protocol={protocol} is not supported yet: use a PLAINTEXT listener of the broker"
        )
    return Security()
