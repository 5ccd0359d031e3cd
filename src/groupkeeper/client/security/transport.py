"""Security of the transport: no encryption, or TLS. `sasl` adds SASL to either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupkeeper.client.errors import ClientError

if TYPE_CHECKING:
    import ssl

    from groupkeeper.client.addresses import Address
    from groupkeeper.client.connection import Connection


class Security:
    """PLAINTEXT: no encryption, no authentication. Base of the other protocols."""

    is_sasl = False
    """Whether the client authenticates itself by SASL."""

    principal = ""
    """The client's principal for brokers; empty: anonymous, or known to the brokers only (certificates, tokens)."""

    hang_up_hint = "it may want TLS, or be no Kafka broker"
    """Possible reasons when a broker closes the connection on the first request, or doesn't reply."""

    def tls(self) -> ssl.SSLContext | None:
        """The context to connect with, None for a connection without TLS."""
        return None

    def explain(self, address: Address, error: OSError) -> ClientError | None:
        """The error for a connection that failed or was lost; None when security is not the cause."""
        return None

    async def diagnose(self, address: Address, host: str, timeout_s: float) -> ClientError | None:
        """Called after a broker closed the connection before any response: the reason, None when it is unknown."""
        from groupkeeper.client.tls_failures import answers_with_tls, only_tls

        return only_tls(address) if await answers_with_tls(host, address.port, timeout_s) else None

    async def authenticate(self, connection: Connection, timeout_s: float) -> None:
        """Called on every new connection, after ApiVersions and before any other request.

        Called again when `connection.renew_at_s` has come. Raises AuthenticationFailed, and as a request does.
        """


class TlsSecurity(Security):
    """TLS, with a certificate of the client's own when the properties name one."""

    hang_up_hint = "it may want a client certificate (ssl.keystore.location)"

    def __init__(self, properties: Mapping[str, str]) -> None:
        from groupkeeper.client.security.tls import tls_context

        self._context = tls_context(properties)
        self._properties = properties

    def tls(self) -> ssl.SSLContext | None:
        return self._context

    def explain(self, address: Address, error: OSError) -> ClientError | None:
        import ssl

        from groupkeeper.client.tls_failures import explained

        if isinstance(error, ssl.SSLError | ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
            return explained(address, error, self._properties)
        return None

    async def diagnose(self, address: Address, host: str, timeout_s: float) -> ClientError | None:
        from groupkeeper.client.tls_failures import answers_without_tls, not_tls

        if await answers_without_tls(host, address.port, timeout_s):
            return not_tls(address, self._properties)
        return None
