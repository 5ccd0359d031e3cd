"""Tests that need Apache Kafka itself."""

from collections.abc import Callable

import pytest
from tools.apache_kafka import VERSION, ApacheKafkaUnavailable, fetch, fetch_streams, why_unavailable


def require(version: str = VERSION) -> None:
    """Fetches that release the first time; skips the test where it cannot be had or run."""
    if (reason := why_unavailable()) is not None:
        pytest.skip(reason)
    _skip_without(lambda: fetch(version))


def require_streams() -> None:
    """The same of Kafka Streams."""
    _skip_without(fetch_streams)


def _skip_without(fetched: Callable[[], object]) -> None:
    try:
        fetched()
    except ApacheKafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))
