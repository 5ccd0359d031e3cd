"""Tests that need Apache Kafka itself."""

import pytest
from tools.apache_kafka import VERSION, ApacheKafkaUnavailable, fetch, why_unavailable


def require(version: str = VERSION) -> None:
    """Fetches that release the first time; skips the test where it cannot be had or run."""
    if (reason := why_unavailable()) is not None:
        pytest.skip(reason)
    try:
        fetch(version)
    except ApacheKafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))
