"""What several files about pages share."""

from collections.abc import Iterator

import pytest
from tests.live.stage import arrange

from groupkeeper.testing.background import BackgroundBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[BackgroundBroker]:
    """With topics and groups to look at."""
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        yield broker
