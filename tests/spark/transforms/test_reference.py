"""Tables of many random histories at once, each a cluster of its own, as a slow replay in Python has them."""

import os
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.transforms import reference
from tests.spark.transforms.causes import with_causes
from tests.spark.transforms.histories import BEGIN, DAY, TOPICS, History, Logged, random_history
from tests.spark.transforms.traces import current_offsets, events_of, listed, table_of, there
from tests.unit.pipeline.decode.record_sets import read_record_sets

from groupkeeper.pipeline.decode.arrow import Origin, decode, places_of
from groupkeeper.pipeline.decode.history import commits, group_records
from groupkeeper.pipeline.present.lag import lag
from groupkeeper.pipeline.present.quality import all_read, offsets_read
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import DECODED, LOG_OFFSETS, OFFSETS_AS_OF, RATES, REJECTS
from groupkeeper.pipeline.tables.state import WANTED
from groupkeeper.pipeline.transforms.estimates import estimated, untimed
from groupkeeper.pipeline.transforms.offsets_as_of import offsets_as_of
from groupkeeper.pipeline.transforms.rates import rates, rates_of_groups
from groupkeeper.pipeline.transforms.rejects import rejects, rejects_in

COUNT = int(os.environ.get("PIPELINE_HISTORIES", "150"))
SEED = int(os.environ.get("PIPELINE_SEED", "1"))


class Fleet(NamedTuple):
    """Histories by their clusters: as records, and as tables."""

    records: dict[str, list[Logged]]
    commits: pa.Table
    group_records: pa.Table
    events: pa.Table


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return fleet_of(COUNT)


def fleet_of(count: int) -> Fleet:
    histories = [random_history(seed) for seed in range(SEED, SEED + count)]
    decoded = pa.Table.from_batches(batches(histories), DECODED.arrow)
    records = group_records(decoded)
    history = with_causes(commits(decoded), records)
    return Fleet({each.cluster: reference.seen(each) for each in histories}, history, records, events_of(records))


def batches(histories: list[History]) -> list[pa.RecordBatch]:
    records, _ = read_record_sets([each.record_set() for each in histories])
    return list(decode(records, places_of([Origin(each.cluster, 0) for each in histories])))


def millis(time: Any) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def compare(fleet: Fleet, found: list[tuple[str, Any]], wanted: Callable[[list[Logged]], Any]) -> None:
    """Rows by cluster, without the cluster, each once."""
    rows: dict[str, list[Any]] = defaultdict(list)
    for cluster, row in found:
        rows[cluster].append(row)
    assert set(rows) <= set(fleet.records)
    for cluster, records in fleet.records.items():
        assert sorted(rows[cluster], key=repr) == sorted(wanted(records), key=repr), cluster


def test_every_record_is_a_row(fleet: Fleet) -> None:
    rows = [(row.cluster, row.log_offset) for table in (fleet.commits, fleet.group_records) for row in listed(table)]
    compare(fleet, rows, lambda records: [one.offset for one in records])


def shares_of(rows: pa.Table) -> list[pa.Table]:
    """All rows of a group are in one of them, and those without a group in one."""
    share = [sum(map(ord, group_id or "")) % 3 for group_id in rows["group_id"].to_pylist()]
    return [rows.filter(pa.array([own == number for own in share], pa.bool_())) for number in range(3)]


def test_what_shares_of_the_groups_give_adds_up(fleet: Fleet) -> None:
    whole = fleet.commits, fleet.group_records, fleet.events
    shares = list(zip(*map(shares_of, whole), strict=True))
    found = []
    for parts in (shares, [whole]):
        counted = pa.concat_tables([rates_of_groups(commits, records, events) for commits, records, events in parts])
        read = pa.concat_tables([offsets_read(commits, records) for commits, records, _ in parts])
        bad = pa.concat_tables([rejects_in(records, 1) for _, records, _ in parts])
        tables = (
            rates(counted, RATES.arrow.empty_table(), OPEN), all_read(read),
            rejects(bad, REJECTS.arrow.empty_table()),
        )  # fmt: skip
        found.append([sorted(map(repr, table.to_pylist())) for table in tables])
    assert found[0] == found[1]
    assert all(found[0])


def test_offsets_as_of(spark: SparkSession, fleet: Fleet) -> None:
    rng = random.Random(SEED)
    commits, group_records = (spark.createDataFrame(rows) for rows in (fleet.commits, fleet.group_records))
    seen = [one for records in fleet.records.values() for one in reference.commits_of(records)]
    times = [one.time_ms for one in seen if one.value is not None and one.producer_id < 0]
    for then in (BEGIN + rng.randrange(60 * DAY), *rng.sample(times, 2)):
        rows = offsets_as_of(commits, group_records, then)
        assert rows.columns == OFFSETS_AS_OF.names
        found = [
            (row.cluster, ((row.group_id, row.topic, row.partition), (
                row.committed_offset, row.leader_epoch, row.topic_id, row.metadata, millis(row.commit_time),
            )))
            for row in rows.collect()
        ]  # fmt: skip
        assert found
        compare(fleet, found, lambda records, then=then: reference.offsets_as_of(records, then).items())  # type: ignore[misc]


def random_log(rng: random.Random) -> reference.Log:
    end = rng.choice((0, 5, 40, 120))
    there = {
        offset: rng.choice((None, reference.Unread, BEGIN + rng.randrange(100 * DAY))) for offset in range(-3, end)
    }
    committed = {
        offset: rng.choice((time, None, BEGIN + rng.randrange(100 * DAY)))
        for offset, time in there.items() if isinstance(time, int)
    }  # fmt: skip
    return reference.Log(
        rng.randrange(end + 1), rng.randrange(end + 1), end, BEGIN + rng.randrange(200 * DAY), there, committed
    )


def test_lag(fleet: Fleet, spark: SparkSession) -> None:
    rng = random.Random(SEED)
    logs = {
        cluster: {(topic, partition): random_log(rng) for topic in TOPICS for partition in (0, 1, 2**31 - 1)}
        for cluster in fleet.records
    }
    rows = [
        {
            "cluster": cluster, "topic": topic, "partition": partition, "log_start_offset": log.start,
            "last_stable_offset": log.stable, "log_end_offset": log.end, "measured_time": moment(log.measured_ms),
            "is_deleted": False, "records": [
                {"offset": offset, "is_there": time is not None,
                 "time": moment(time) if isinstance(time, int) else None,
                 "is_committed_there": log.committed.get(offset, 0) is not None,
                 "committed_time": None if (at := log.committed.get(offset)) is None else moment(at)}
                for offset, time in log.records.items()
            ],
        }
        for cluster, own in logs.items() for (topic, partition), log in own.items()
    ]  # fmt: skip
    known = current_offsets(fleet.commits), table_of(LOG_OFFSETS, rows)
    asked = there(spark, untimed(known[0].select(WANTED.names), known[1]))
    table = lag(*known, estimated(asked, spark.createDataFrame(fleet.commits)).toArrow())
    found = [
        (row.cluster, ((row.group_id, row.topic, row.partition), (
            row.lag, row.committed_lag, row.lag_ms, row.committed_lag_ms, row.lag_basis,
        )))
        for row in listed(table)
    ]  # fmt: skip
    by_name = {id(records): cluster for cluster, records in fleet.records.items()}
    compare(fleet, found, lambda records: reference.lag(records, logs[by_name[id(records)]]).items())


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
