"""Java clients of older Kafkas log in to our broker in every way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.broker.security.every_login import PATIENCE_S, check_java
from tools.apache_kafka import ApacheKafkaUnavailable, fetch, why_unavailable

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(2 * PATIENCE_S)]


@pytest.mark.parametrize("version", ["2.3.1", "2.8.2", "3.9.1"])
def test_every_way(version: str, tmp_path: Path) -> None:
    if reason := why_unavailable():
        pytest.skip(reason)
    try:
        fetch(version)
    except ApacheKafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))
    check_java(version, tmp_path)
