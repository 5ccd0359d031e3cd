"""A cluster that `follow` reads by itself: each record once, and nothing after the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following import polling
from groupkeeper.pipeline.jobs.following.polling import Polling
from groupkeeper.pipeline.jobs.history import Aside
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Range, plan
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.pipeline.kafka.written import Counts, Written
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 30
TOPIC = "__consumer_offsets"


@pytest.fixture(scope="module")
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        asyncio.run(commit(broker.bootstrap_servers, 0))
        yield broker


async def commit(servers: str, offset: int) -> None:
    async with Admin(servers) as admin:
        if not offset:
            (await admin.create_topics([NewTopic("orders", 1)])).all()
        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(offset)}
        for each in (await admin.alter_offsets_of_groups({"reader": offsets})).all().values():
            each.all()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Appended:
    """What was appended, and what Spark was to read."""

    def __init__(self) -> None:
        self.commits = 0
        self.by_spark: list[int] = []

    def append(self, aside: Aside) -> None:
        self.commits += aside.written.counts.commits

    def read_much(self, ranges: Sequence[Range]) -> Aside:
        self.by_spark.append(sum(each.size for each in ranges))
        return Aside("aside", Written((), (), Counts(commits=self.by_spark[-1]), ()))

    def poll(self, servers: str, folder: Path, *, topic_id: str | None = None, **properties: str) -> Polling:
        cluster: dict[str, object] = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, **properties}
        if topic_id is not None:
            cluster["topicIds"] = json.dumps({TOPIC: topic_id})
        options = parse_options(
            {"clusters": json.dumps({"c": {**cluster, "startingOffsets": "earliest"}}), "rows": "decoded"},
            is_streaming=True,
        )
        return Polling(
            "c", options, "aside", folder, interval_s=0.05, read_much=self.read_much, append=self.append
        )  # fmt: skip


def test_what_is_written_meanwhile_is_appended_once(broker: BackgroundBroker, tmp_path: Path) -> None:
    found = Appended()
    reading = found.poll(broker.bootstrap_servers, tmp_path)
    wait_for(lambda: found.commits > 0)
    before = found.commits
    asyncio.run(commit(broker.bootstrap_servers, 1))
    wait_for(lambda: found.commits > before)
    time.sleep(0.3)
    assert found.commits == before + 1
    assert reading.isActive
    progress = reading.lastProgress
    assert progress is not None
    reached = json.loads(progress["sources"][0]["endOffset"])["c"]["__consumer_offsets"]
    assert sum(reached.values()) >= found.commits
    reading.stop()
    assert not found.by_spark


def test_what_is_worth_tasks_is_left_to_spark(
    broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "RECORDS_WORTH_A_TASK", 1)
    found = Appended()
    reading = found.poll(broker.bootstrap_servers, tmp_path)
    wait_for(lambda: found.commits > 0)
    reading.stop()
    assert found.by_spark == [found.commits]


def test_nothing_is_appended_after_the_end(broker: BackgroundBroker, tmp_path: Path) -> None:
    found = Appended()
    with broker.faults.delay("Fetch", 700):
        reading = found.poll(broker.bootstrap_servers, tmp_path)
        time.sleep(0.3)
        reading.stop()
        wait_for(lambda: not reading.isActive)
    assert (found.commits, reading.exception()) == (0, None)


def test_a_cluster_that_is_away_ends_it(tmp_path: Path) -> None:
    reading = Appended().poll("127.0.0.1:9", tmp_path, **{"kafka.default.api.timeout.ms": "300"})
    wait_for(lambda: not reading.isActive)
    assert isinstance(reading.exception(), SourceError)


@pytest.mark.parametrize("least", [1, 100_000])
def test_nothing_is_appended_of_a_cluster_that_is_rebuilt_between_its_offsets_and_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """Whoever reads: its log is as long as the one before, only the id of its topic tells."""
    monkeypatch.setattr(polling, "RECORDS_WORTH_A_TASK", least)
    found = Appended()
    with ExitStack() as brokers:
        properties = {"offsets.topic.num.partitions": "1"}
        old = brokers.enter_context(BackgroundBroker(properties=properties))
        servers = old.bootstrap_servers
        asyncio.run(commit(servers, 0))
        options = parse_options({"kafka.bootstrap.servers": servers, "cluster": "c", "rows": "decoded"})
        identity = asyncio.run(plan(options)).instants["c"].identity
        assert identity.topic_id is not None

        def rebuild() -> None:
            old.stop()
            brokers.enter_context(BackgroundBroker(port=int(servers.rpartition(":")[2]), properties=properties))
            asyncio.run(commit(servers, 0))

        def read(ranges: Sequence[Range], options: ReadOptions) -> Iterator[pa.RecordBatch]:
            rebuild()
            yield from read_ranges(ranges, options)

        def read_much(ranges: Sequence[Range]) -> Aside:
            rebuild()
            return Appended.read_much(found, ranges)

        monkeypatch.setattr(polling, "read_ranges", read)
        monkeypatch.setattr(found, "read_much", read_much)
        reading = found.poll(servers, tmp_path, topic_id=identity.topic_id)
        wait_for(lambda: not reading.isActive)
    assert found.commits == 0
    assert "topic __consumer_offsets was deleted and made again" in str(reading.exception())
