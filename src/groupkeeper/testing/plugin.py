"""pytest plugin shipped with the package: an embedded broker as a fixture (docs/testing.md).

Imports nothing heavy until a fixture is used, because every pytest run of an environment with groupkeeper loads it.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from groupkeeper.testing.background import BackgroundBroker


@pytest.fixture(scope="session")
def groupkeeper_settings() -> Mapping[str, str]:
    """Settings of the brokers below, by Kafka's names; override this fixture in a conftest.py.

    The default differs from Kafka's in one point: the first rebalance of a group doesn't wait three seconds.
    """
    return {"group.initial.rebalance.delay.ms": "0"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "groupkeeper(users, acls, tls, properties, brokers, racks): settings of the test's groupkeeper_broker",
    )


@pytest.fixture
def groupkeeper_broker(
    request: pytest.FixtureRequest, groupkeeper_settings: Mapping[str, str]
) -> Iterator[BackgroundBroker]:
    """A new, empty broker for this test only, removed afterwards; see `bootstrap_servers`. The marker `groupkeeper`
    gives it nodes, users, ACLs, TLS and more settings, as `BackgroundBroker` takes them.
    """
    from groupkeeper.testing.background import BackgroundBroker

    marker = request.node.get_closest_marker("groupkeeper")
    wanted = {} if marker is None else dict(marker.kwargs)
    properties = {**groupkeeper_settings, **wanted.pop("properties", {})}
    with BackgroundBroker(properties=properties, **wanted) as broker:
        yield broker


@pytest.fixture(scope="session")
def groupkeeper_session_broker(groupkeeper_settings: Mapping[str, str]) -> Iterator[BackgroundBroker]:
    """One broker for all tests of the session, which must use topics and groups with different names."""
    from groupkeeper.testing.background import BackgroundBroker

    with BackgroundBroker(properties=groupkeeper_settings) as broker:
        yield broker
