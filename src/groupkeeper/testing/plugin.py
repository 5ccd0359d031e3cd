"""pytest plugin shipped with the package: an embedded broker as a fixture.

Imports nothing heavy until a fixture is used, because every pytest run of an environment with groupkeeper loads it.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from groupkeeper.testing.background import BackgroundBroker


@pytest.fixture(scope="session")
def embedded_broker_properties() -> Mapping[str, str]:
    """Settings of the brokers below, by Kafka's names; override it. By default groups don't wait for more members."""
    return {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def embedded_broker(embedded_broker_properties: Mapping[str, str]) -> Iterator[BackgroundBroker]:
    """A broker of this test alone, on a free port, its logs in a temporary directory: see `bootstrap_servers`."""
    from groupkeeper.testing.background import BackgroundBroker

    with BackgroundBroker(properties=embedded_broker_properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def embedded_broker_session(embedded_broker_properties: Mapping[str, str]) -> Iterator[BackgroundBroker]:
    """One broker for the tests of a whole run, which keep apart by the names of their topics and groups."""
    from groupkeeper.testing.background import BackgroundBroker

    with BackgroundBroker(properties=embedded_broker_properties) as broker:
        yield broker
