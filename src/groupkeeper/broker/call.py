"""A request, in the form that API modules get."""

from __future__ import annotations

from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.security.identity import ANONYMOUS, Identity


class Call:
    """A decoded request and facts about its sender."""

    __slots__ = (
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "correlation_id",
        "identity",
        "listener",
        "message",
        "node",
        "principal",
        "received_ms",
        "security_protocol",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        message: RootMessage,
        client_host: str = "/127.0.0.1",
        listener: str = "PLAINTEXT",
        identity: Identity | None = None,
        security_protocol: str = "PLAINTEXT",
        received_ms: int = 0,
        node: int = 1,
        *,
        principal: str = ANONYMOUS,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        """As sent; None: the client sent none."""
        self.message = message
        self.client_host = client_host
        """"/" and the peer's address, Kafka's form."""
        self.listener = listener
        """The name of the connection's listener."""
        self.identity = identity or Identity(principal)
        """The principal, and how it was authenticated."""
        self.principal = self.identity.principal
        """The client's principal, as `Type:name`."""
        self.security_protocol = security_protocol
        """The listener's protocol, by Kafka's name."""
        self.received_ms = received_ms
        """When processing began, milliseconds since the epoch."""
        self.node = node
        """The id of the node that got the request."""

    def __copy__(self) -> Call:  # the default of `copy` fails in compiled code
        return Call(
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.message,
            self.client_host,
            self.listener,
            self.identity,
            self.security_protocol,
            self.received_ms,
            self.node,
        )
