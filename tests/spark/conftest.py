"""One Spark session and one broker for all tests here; what runs slowly is said once."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from groupkeeper.pipeline.session import start_session
from groupkeeper.testing.background import BackgroundBroker


def pytest_addoption(parser: pytest.Parser) -> None:
    """Spark as it runs for long, with generated code and adaptive plans; the quick settings are those of short runs."""
    parser.addoption("--production", action="store_true", help="Spark's settings are those of `pipeline follow`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starting Spark takes its time on a busy machine."""
    for item in items:
        if item.nodeid.startswith("tests/spark/") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    session = start_session(
        "tests",
        master="local[2]",
        log=tmp_path_factory.mktemp("spark") / "spark.log",
        settings={"spark.sql.shuffle.partitions": "2"},
        is_short=not pytestconfig.getoption("--production", False),
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """A broker for the session: tests keep apart by the names of their topics and groups."""
    properties = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "log.retention.ms": "-1",  # the tests' records are of 2023
    }
    with BackgroundBroker(properties=properties) as broker:
        yield broker.bootstrap_servers
