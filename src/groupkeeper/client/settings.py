"""Settings of a client, from Kafka's property names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from groupkeeper.client.errors import IllegalArgument


class Settings(NamedTuple):
    """Times are in milliseconds. Names are Kafka's, dots as underscores."""

    client_id: str = "groupkeeper-admin"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    connections_per_broker: int = 4
    """A broker serves the requests of one connection one after the other, so big batches are spread over several."""
    max_answer_bytes: int = 100 * 1024 * 1024
    """Larger responses are refused: they are nearly always none of Kafka. Kafka's own limit for requests."""

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> Settings:
        """Settings with the properties that are known here; raises IllegalArgument naming a bad one."""
        given: dict[str, Any] = {}
        for name in _NAMES:
            if name in properties:
                text = properties[name]
                given[name.replace(".", "_")] = text if name == "client.id" else _milliseconds(name, text)
        return cls(**given)


_NAMES = (
    "client.id",
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
