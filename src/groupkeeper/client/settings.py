"""Settings of a client, from Kafka's property names."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.errors import IllegalArgument

CONNECTIONS_PER_BROKER = 4
"""A broker serves the requests of one connection one after the other, so big batches are spread over several."""

MAX_ANSWER_BYTES = 100 * 1024 * 1024
"""Larger responses are refused: they are nearly always none of Kafka. Kafka's own limit for requests."""


class Settings:
    """Times are in milliseconds. Names are Kafka's, dots as underscores."""

    __slots__ = (
        "client_id",
        "connections_per_broker",
        "default_api_timeout_ms",
        "max_answer_bytes",
        "request_timeout_ms",
        "retry_backoff_max_ms",
        "retry_backoff_ms",
        "socket_connection_setup_timeout_ms",
    )

    def __init__(
        self,
        *,
        client_id: str = "groupkeeper-admin",
        request_timeout_ms: int = 30_000,
        default_api_timeout_ms: int = 30_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        socket_connection_setup_timeout_ms: int = 10_000,
        connections_per_broker: int = CONNECTIONS_PER_BROKER,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.default_api_timeout_ms = default_api_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self.retry_backoff_max_ms = retry_backoff_max_ms
        self.socket_connection_setup_timeout_ms = socket_connection_setup_timeout_ms
        self.connections_per_broker = connections_per_broker
        self.max_answer_bytes = max_answer_bytes

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> Settings:
        """Settings with the properties that are known here; raises IllegalArgument naming a bad one."""
        settings = cls()
        if "client.id" in properties:
            settings.client_id = properties["client.id"]
        for name in _INTEGERS:
            if name in properties:
                setattr(settings, name.replace(".", "_"), _milliseconds(name, properties[name]))
        return settings


_INTEGERS = (
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
)


def _milliseconds(name: str, text: str) -> int:
    try:
        value = int(str(text).strip())
    except ValueError:
        value = -1
    if value < 0:
        raise IllegalArgument(f"{name}={text}: a number of milliseconds is needed")
    return value
