from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.unit.broker.peer import Peer, peer_with_topic

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.placement.placement import Placement
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.open_files import OpenFiles

OpenLog = Callable[..., PartitionLog]


@pytest_asyncio.fixture
async def peer(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Peer]:
    """Of the module's `new_broker`."""
    async with request.module.new_broker(tmp_path) as broker:
        yield peer_with_topic(broker)


@pytest.fixture
def files() -> Iterator[OpenFiles]:
    opened = OpenFiles(limit=4)
    yield opened
    opened.close_all()


@pytest.fixture
def open_log(tmp_path: Path, files: OpenFiles) -> OpenLog:
    """Opens the log of partition t-0 and recovers what is there; arguments are its recovery point and settings of the
    topic.
    """
    directory = tmp_path / "t-0"

    def open_one(recovery_point: int = 0, **settings: str) -> PartitionLog:
        files.close_all()
        config = TopicConfig({name.replace("_", "."): value for name, value in settings.items()}, Config())
        log = PartitionLog(str(directory), "t", bytes(range(16)), 0, config, files, 86_400_000, Placement([1], [1], 1))
        log.recovery_point = recovery_point
        if directory.exists():
            log.recover([path.name for path in directory.iterdir()])
        return log

    return open_one
