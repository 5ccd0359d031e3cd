"""Clients of other languages log in to our broker in every way: Java's of today."""

from pathlib import Path

import pytest
from tests.conformance.broker.security.every_login import PATIENCE_S, check_java
from tools.apache_kafka import VERSION

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(PATIENCE_S + 60)]


def test_every_way(apache_jars: None, tmp_path: Path) -> None:
    check_java(VERSION, tmp_path)
