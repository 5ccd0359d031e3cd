"""What a batch of `follow` asks and reads: each record once, and no cluster waits for another."""

import asyncio
import json
import pickle
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import InputPartition

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.pipeline.jobs.following import source
from groupkeeper.pipeline.jobs.following.source import (
    Answer,
    Failed,
    Orders,
    Part,
    Planner,
    pickled,
    read_part,
    tasks_of,
)
from groupkeeper.pipeline.jobs.reading import Reading
from groupkeeper.pipeline.kafka import planning
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Planned, Range, named, plan_cluster
from groupkeeper.pipeline.storage.contents import RECEIPT
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.testing.background import BackgroundBroker

TOPIC = "__consumer_offsets"
ONE = {"offsets.topic.num.partitions": "1"}


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=ONE) as broker:
        asyncio.run(commit(broker.bootstrap_servers, 0))
        yield broker


async def commit(servers: str, *values: int) -> None:
    async with Admin(servers) as admin:
        if 0 in values:
            (await admin.create_topics([NewTopic("orders", 1)])).all()
        for value in values:
            offsets = {TopicPartition("orders", 0): OffsetAndMetadata(value)}
            for each in (await admin.alter_offsets_of_groups({"reader": offsets})).all().values():
                each.all()


def options_of(*servers: str, **properties: str) -> ReadOptions:
    own = {f"kafka.{name.replace('_', '.')}": value for name, value in properties.items()}
    clusters = {f"c{number}": {"kafka.bootstrap.servers": each, **own} for number, each in enumerate(servers)}
    parsed = parse_options({"clusters": json.dumps(clusters), "rows": "decoded"})
    return parsed._replace(fails_on_data_loss=False, poll_timeout_ms=1000)


def orders(options: ReadOptions, known: NextOffsets | None = None, **more: object) -> Orders:
    numbers = range(len(options.clusters))
    found = Orders(options, numbers, frozenset(), frozenset(), 5.0, 0.0, {}, known or {}, {}, frozenset(), None)
    return found._replace(**more)  # type: ignore[arg-type]


def read(answer: Answer, options: ReadOptions, **more: Any) -> list[tuple[source.Receipt, int]]:
    """The receipts of all clusters, and the numbers of rows."""
    options = named(options, answer.plan.ranges)
    found = [read_part(part, options=options, folder=None, **more) for task in tasks_of(answer.readings, options)
             for part in task]  # fmt: skip
    counts = [receipt.written.counts for receipt, _ in found]
    return [(receipt, each.commits + each.others) for (receipt, _), each in zip(found, counts, strict=True)]


def test_what_is_read_is_what_the_tables_lack(broker: BackgroundBroker) -> None:
    options, planner = options_of(broker.bootstrap_servers), Planner()
    ((first, before),) = read(planner.answer(orders(options)), options)
    assert (before > 0, first.is_whole) == (True, True)
    known = {"c0": first.reached}
    assert read(planner.answer(orders(options, known)), options) == []
    asyncio.run(commit(broker.bootstrap_servers, 1))
    ((second, rows),) = read(planner.answer(orders(options, known)), options)
    assert (rows, second.reached) == (1, {0: first.reached[0] + 1})


def test_all_logs_are_measured_only_for_tables(broker: BackgroundBroker) -> None:
    options, planner = options_of(broker.bootstrap_servers), Planner()
    topics = []
    for measure_at in (time.time() + 3600, 0.0):
        answer = planner.answer(orders(options, measure_at=measure_at))
        topics.append((answer.is_measured, {tp.topic for tp in answer.plan.instants["c0"].logs}))
    assert topics == [(False, {TOPIC}), (True, {TOPIC, "orders"})]


def test_a_slow_cluster_is_asked_only_for_tables(broker: BackgroundBroker) -> None:
    options, planner = options_of(broker.bootstrap_servers), Planner()
    found = [
        [each.name for each in planner.answer(orders(options, slow=frozenset([0]), measure_at=measure_at)).readings]
        for measure_at in (time.time() + 3600, 0.0)
    ]
    assert found == [[], ["c0"]]


def test_a_read_that_takes_long_is_slow_though_it_is_whole(broker: BackgroundBroker) -> None:
    options, planner = options_of(broker.bootstrap_servers), Planner()
    ((receipt, _),) = read(planner.answer(orders(options)), options, clock=iter(range(0, 100, 5)).__next__)
    assert (receipt.is_whole, receipt.is_slow) == (True, True)


def test_a_cluster_that_says_nothing_is_waited_for_once(
    broker: BackgroundBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "PATIENCE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are taken, and nothing is ever said
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        options = options_of(broker.bootstrap_servers, address, default_api_timeout_ms="4000")
        planner, told = Planner(), f"cluster c1 ({address}) has not answered for 2 s"
        answer = planner.answer(orders(options))
        assert ([each.name for each in answer.readings], answer.failed) == (["c0"], {1: Failed(told, True)})
        late = planner._asked[1]
        answer = planner.answer(orders(options, away=frozenset([1])))
        assert (set(answer.failed), planner._asked[1]) == ({1}, late)  # asked once
        assert late.future.exception(60) is not None
        answer = planner.answer(orders(options, away=frozenset([1])))
    assert answer.failed[1].is_away
    assert answer.failed[1].text != told


def test_what_is_told_is_how_long_it_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the time of the last measurement of all logs, where that is more than the least."""
    monkeypatch.setattr(source, "PATIENCE_S", 0.2)
    planner = Planner()
    planner._took_s[0] = 0.6
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options, began = options_of(f"127.0.0.1:{silent.getsockname()[1]}"), time.monotonic()
        failed = planner.answer(orders(options)).failed
        assert time.monotonic() - began >= 1.2
    assert failed[0].text.endswith("has not answered for 1.2 s")


def test_a_late_answer_without_all_logs_is_none_for_tables(
    broker: BackgroundBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while another cluster is waited for. Topics that it does not have are not deleted."""
    pauses_s = {0: 1.5, 1: 1.0}

    async def late(options: ReadOptions, number: int, *, measures: bool, of_all: bool) -> Planned:
        await asyncio.sleep(pauses_s[number])
        return await plan_cluster(options, number, measures=measures, of_all=of_all)

    monkeypatch.setattr(planning, "plan_cluster", late)
    monkeypatch.setattr(source, "PATIENCE_S", 1.2)
    options, planner = options_of(broker.bootstrap_servers, broker.bootstrap_servers), Planner()
    assert set(planner.answer(orders(options, measure_at=time.time() + 3600)).failed) == {0}
    pauses_s[0] = 0.0
    answer = planner.answer(orders(options, away=frozenset([0])))
    assert all("orders" in {tp.topic for tp in each.logs} for each in answer.plan.instants.values())
    assert (answer.is_measured, set(answer.failed)) == (True, {0})
    planner._asked[0].future.result(10)
    answer = planner.answer(orders(options, away=frozenset([0])))
    assert {"orders" in {tp.topic for tp in each.logs} for each in answer.plan.instants.values()} == {True}
    assert set(answer.plan.instants) == {"c0", "c1"}


def test_a_cluster_that_is_away_is_not_waited_for(broker: BackgroundBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = options_of(broker.bootstrap_servers, f"127.0.0.1:{silent.getsockname()[1]}")
        planner = Planner()
        began = time.monotonic()
        monkeypatch.setattr(source, "PATIENCE_S", 60.0)
        answer = planner.answer(orders(options, away=frozenset([1])))
        assert time.monotonic() - began < 50
    assert ([each.name for each in answer.readings], set(answer.failed)) == (["c0"], {1})


def test_a_slow_cluster_goes_on_where_its_time_was_over(broker: BackgroundBroker) -> None:
    asyncio.run(commit(broker.bootstrap_servers, *range(1, 40)))
    options, planner = options_of(broker.bootstrap_servers, max_partition_fetch_bytes="600"), Planner()
    known: dict[str, dict[int, int]] = {}
    rows, batches = 0, 0
    while answer := read(planner.answer(orders(options, known)), options, clock=iter(range(0, 10**6, 3)).__next__):
        ((receipt, more),) = answer
        assert receipt.reached[0] > known.get("c0", {}).get(0, 0)
        known = {"c0": dict(receipt.reached)}
        rows, batches = rows + more, batches + 1
    assert (rows, batches > 2) == (known["c0"][0], True)


def test_what_came_before_a_failure_counts(broker: BackgroundBroker, tmp_path: Path) -> None:
    asyncio.run(commit(broker.bootstrap_servers, *range(1, 40)))
    options, planner = options_of(broker.bootstrap_servers, max_partition_fetch_bytes="600"), Planner()
    answer = planner.answer(orders(options))
    (reading,) = answer.readings

    looks: list[float] = []

    def late() -> float:
        looks.append(0.0)
        if len(looks) == 2:  # the first one is before it reads
            broker.faults.delay("Fetch", 5_000)
        return 0.0

    part = Part(reading, False)
    receipt, _ = read_part(part, options=named(options, answer.plan.ranges), folder=tmp_path, clock=late)
    broker.faults.clear()
    assert receipt.failed is not None
    assert receipt.failed.is_away
    assert 0 < receipt.reached[0] < reading.ranges[0].end
    assert receipt.written.counts.commits + receipt.written.counts.others == receipt.reached[0]


def test_nothing_counts_of_a_cluster_that_is_made_again_between_its_offsets_and_its_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its log is as long as the one before, only the id of its topic tells."""
    with ExitStack() as brokers:
        old = brokers.enter_context(BackgroundBroker(properties=ONE))
        servers = old.bootstrap_servers
        asyncio.run(commit(servers, 0))
        options = options_of(servers)
        answer = Planner().answer(orders(options))
        old.stop()
        brokers.enter_context(BackgroundBroker(port=int(servers.rpartition(":")[2]), properties=ONE))
        asyncio.run(commit(servers, 0))
        part = Part(answer.readings[0], False)
        receipt, _ = read_part(part, options=named(options, answer.plan.ranges), folder=tmp_path)
    assert (receipt.reached, receipt.written.counts.commits) == ({}, 0)
    assert receipt.failed is not None
    assert "topic __consumer_offsets was deleted and made again" in receipt.failed.text


def test_a_large_cluster_has_tasks_of_its_own_and_small_ones_share_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    left = [
        Reading(f"c{number}", number, (Range(number, f"c{number}", TOPIC, 0, 0, size),), ())
        for number, size in enumerate([10, 0, 3_000_000, 20, 30])
    ]
    options = options_of(*["127.0.0.1:1"] * 5)
    tasks = [[(part.reading.number, part.is_shared) for part in task] for task in tasks_of(left, options)]
    assert sorted([*tasks[0], *tasks[1]]) == [(0, False), (3, False), (4, False)]
    assert tasks[2:] == [[(2, True)]] * 3
    capped = source._capped(left[2])
    assert capped.size == 2_000_000


def test_files_are_made_in_memory(broker: BackgroundBroker) -> None:
    """Where tasks cannot write: Spark writes them, each to a place of its name, and the receipt beside them."""
    options = options_of(broker.bootstrap_servers)
    answer = Planner().answer(orders(options))
    parts = [Part(each, False) for each in answer.readings]
    tasks = source._Tasks(parts, named(options, answer.plan.ranges), None, 5.0)
    found = pa.Table.from_batches(source._Reader(Path()).read(InputPartition(pickled(tasks))))
    *files, receipt = zip(found["place"].to_pylist(), found["content"].to_pylist(), strict=True)
    assert receipt[0] == RECEIPT
    written = pickle.loads(receipt[1]).written
    assert [place for place, _ in files] == [*written.commits, *written.rest]
    rows = [pq.read_metadata(pa.BufferReader(content + b"PAR1")).num_rows for _, content in files]
    assert sum(rows) == written.counts.commits + written.counts.others > 0
