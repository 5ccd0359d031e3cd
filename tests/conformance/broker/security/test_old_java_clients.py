"""Java clients of older Kafkas log in to our broker in every way."""

from pathlib import Path

import pytest
from tests.apache_kafka import require as require_apache_kafka
from tests.conformance.broker.security.every_login import PATIENCE_S, check_java

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(2 * PATIENCE_S)]


@pytest.mark.parametrize("version", ["2.3.1", "2.8.2", "3.9.1"])
def test_every_way(version: str, tmp_path: Path) -> None:
    require_apache_kafka(version)
    check_java(version, tmp_path)
