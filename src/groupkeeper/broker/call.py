"""A request, in the form that API modules get."""

from __future__ import annotations

from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.security.identity import ANONYMOUS, Identity


class Call:
    """A decoded request and facts about its sender.

    Attributes:
        client_id: as sent; None when the client sent none.
        client_host: "/" and the peer's address, Kafka's form.
        listener: name of the listener of the connection. node: id of the node that got the request.
        principal: of the client, `Type:name`.
        identity: the principal, and how it was authenticated.
        security_protocol: of the listener, Kafka's name.
        received_ms: when processing began, milliseconds since the epoch.
    """

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
        self.message = message
        self.client_host = client_host
        self.listener = listener
        self.identity = identity or Identity(principal)
        self.principal = self.identity.principal
        self.security_protocol = security_protocol
        self.received_ms = received_ms
        self.node = node

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
