import pytest


@pytest.fixture(scope="session")
def groupkeeper_settings():
    """Settings of the broker, by Kafka's names: no waiting for further members."""
    return {"group.initial.rebalance.delay.ms": "0"}
