"""pytest plugin shipped with the package: an embedded broker as a fixture.

Imports nothing heavy until a fixture is used, because every pytest run of an environment with groupkeeper loads it.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from groupkeeper.testing.embedded import EmbeddedBroker


@pytest.fixture
def groupkeeper_settings() -> Mapping[str, str]:
    """Settings of `groupkeeper_broker`, with Kafka's names; override it in a module or a conftest."""
    return {}


@pytest.fixture
def groupkeeper_broker(groupkeeper_settings: Mapping[str, str]) -> Iterator[EmbeddedBroker]:
    """A fresh broker for one test, on a free port and with its data in a temporary folder: see `bootstrap_servers`."""
    from groupkeeper.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(groupkeeper_settings) as broker:
        yield broker
