"""One request as the API modules see it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.primitives import RootMessage

ANONYMOUS = "User:ANONYMOUS"


class Call:
    """A decoded request with what is known about its sender.

    Attributes:
        client_id: as sent; None when the client sent none.
        client_host: "/" and the peer's address, Kafka's form.
        listener: name of the listener the connection came in by.
        principal: who asks, `Type:name`.
        received_ms: when the request was taken up, milliseconds since the epoch.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "correlation_id",
        "listener",
        "message",
        "principal",
        "received_ms",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        message: RootMessage,
        *,
        client_host: str = "/127.0.0.1",
        listener: str = "PLAINTEXT",
        principal: str = ANONYMOUS,
        received_ms: int = 0,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.message = message
        self.client_host = client_host
        self.listener = listener
        self.principal = principal
        self.received_ms = received_ms
