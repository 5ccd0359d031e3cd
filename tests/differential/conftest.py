"""What the modules that compare our broker with Apache Kafka have in common."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.pair import both


@pytest.fixture(scope="module")
def sides(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Our broker and Apache Kafka, as two of the module's `Side`, with its `PROPERTIES` if it has some."""
    with both(request.module.Side, getattr(request.module, "PROPERTIES", {})) as sides:
        yield sides
