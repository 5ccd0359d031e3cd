"""Refresh after refresh of random histories, cut anywhere: the same tables as those of one replay of everything."""

from __future__ import annotations

import itertools
import os
import random
from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.transforms import reference
from tests.spark.transforms.test_reference import MINUTE, SEED, Fleet, compare, fleet_of, millis
from tests.spark.transforms.traces import DAY, Trace, there

from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.steps import OPEN, STEPS, Given
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.present.sql import of_rows
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    GROUP_EVENTS,
    GROUP_RECORDS,
    GROUPS,
    MEMBERS,
    RATES,
    REWINDS,
    Table,
)
from groupkeeper.pipeline.tables.state import CARRIED, LAST_COMMITS, LAST_RECORDS, NEW_MOVES, PACES
from groupkeeper.pipeline.transforms.history import is_before, is_from
from groupkeeper.pipeline.transforms.paces import paces
from groupkeeper.pipeline.transforms.query import of_frames
from groupkeeper.pipeline.transforms.tombstones import CAUSES_OF

pytestmark = pytest.mark.long

COUNT = int(os.environ.get("PIPELINE_HISTORIES", "40"))
TIMES = int(os.environ.get("PIPELINE_SPLITS", "2"))
"""So many refreshes come before the last one."""

WITHOUT_CLUSTERS = {NEW_MOVES.name, *(table.name for table in CARRIED), *(
    table.name for table in (CURRENT_OFFSETS, GROUP_EVENTS, GROUPS, MEMBERS, RATES, REWINDS)
)}  # fmt: skip

Cut = dict[str, dict[int, int]]


class Refreshed:
    """What a run of refreshes keeps, in memory; each is what the steps of the pipeline make (steps.Sources)."""

    def __init__(self, spark: SparkSession, fleet: Fleet, *, is_little: bool = True) -> None:
        self._spark, self._fleet = spark, fleet
        self.is_little = is_little
        self._then: dict[str, DataFrame] = {}
        self._new: dict[str, DataFrame] = {}
        self._now: dict[str, DataFrame] = {}
        self.added: dict[str, list[DataFrame]] = defaultdict(list)
        self.causes: list[DataFrame] = []

    def new(self, table: Table) -> DataFrame:
        return self._new[table.name]

    def rows_new(self, table: Table) -> pa.Table:
        assert self.is_little
        return self.new(table).toArrow()

    def has_new(self, table: Table) -> bool:
        return not self._new[table.name].isEmpty()

    def past(self, table: Table) -> DataFrame:
        raise AssertionError(f"{table.name} is read again")

    def then(self, table: Table) -> DataFrame:
        return self._then.get(table.name, self._empty(table))

    def now(self, table: Table) -> DataFrame:
        return self._now.get(table.name, self._empty(table))

    def rows(self, table: Table) -> DataFrame:
        """All rows of a table that rows are added to."""
        found = self.then(table)
        for each in self.added[table.name]:
            found = found.unionByName(each)
        return found

    @property
    def spark(self) -> SparkSession:
        return self._spark

    def rows_then(self, table: Table) -> pa.Table:
        return self.then(table).toArrow()

    def rows_now(self, table: Table) -> pa.Table:
        return self.now(table).toArrow()

    def _frame(self, rows: DataFrame | pa.RecordBatchReader) -> DataFrame:
        return rows.localCheckpoint() if isinstance(rows, DataFrame) else there(self._spark, rows)

    def refresh(self, made_to: Cut, read_to: Cut) -> None:
        for table, whole in ((COMMITS, self._fleet.commits), (GROUP_RECORDS, self._fleet.group_records)):
            self._new[table.name] = whole.where(is_from(made_to) & is_before(read_to))
        self._append_causes()
        given = Given(
            Clusters(parse_options({"kafka.bootstrap.servers": "none:1", "rows": "decoded"}), {}, {}),
            {},
            made_to,
            read_to,
        )
        now: dict[str, DataFrame] = {}
        for step in STEPS:
            if step.table.name not in WITHOUT_CLUSTERS:
                continue
            made = self._frame(step.make(self, given))
            if step.adds:
                self.added[step.table.name].append(made.where(~F.col(OPEN)).select(*step.table.names))
                now[step.table.name] = made.where(OPEN).select(*step.table.names)
                made = made.select(*step.table.names)
            self._now[step.table.name] = made
        carried = {table.name: self._now[table.name] for table in CARRIED}
        self._then = carried | {name: rows for name, rows in now.items() if name != REWINDS.name}

    def _append_causes(self) -> None:
        """As the history's writer tells why offsets went: of what is carried, and of what is new."""
        given = {
            "commits": self.new(COMMITS), "group_records": self.new(GROUP_RECORDS),
            "last_commits": self.then(LAST_COMMITS), "last_records": self.then(LAST_RECORDS),
        }  # fmt: skip
        told: DataFrame | pa.RecordBatchReader
        if self.is_little:
            told = of_rows(CAUSES_OF, {name: rows.toArrow() for name, rows in given.items()})
        else:
            told = of_frames(CAUSES_OF, self._spark, given)
        self.causes.append(self._frame(told).select("cluster", "log_offset", "removed_by"))

    def _empty(self, table: Table) -> DataFrame:
        return self._spark.createDataFrame([], table.ddl)


@pytest.fixture(scope="module")
def fleet(spark: SparkSession) -> Iterator[Fleet]:
    yield from fleet_of(spark, COUNT)


@pytest.fixture(scope="module", params=[False, True], ids=["by Spark", "in this process"])
def refreshed(spark: SparkSession, fleet: Fleet, request: pytest.FixtureRequest) -> Refreshed:
    rng = random.Random(SEED)
    cuts = {name: cuts_of(records, rng) for name, records in fleet.records.items()}
    found = Refreshed(spark, fleet, is_little=request.param)
    before: Cut = {}
    for number in range(TIMES + 1):
        cut = {name: {0: own[number]} for name, own in cuts.items()}
        found.refresh(before, cut)
        before = cut
    return found


def cuts_of(records: list[reference.Logged], rng: random.Random) -> list[int]:
    """Offsets up to which refreshes come, the last one beyond the end. What is written at once, when a group gets
    another type, is read at once.
    """
    places = [
        after.offset for before, after in itertools.pairwise(records) if before.time_ms != after.time_ms
    ]  # fmt: skip
    chosen = sorted(rng.choice(places) if places else 0 for _ in range(TIMES))
    return [*chosen, 2**40]


def test_current_offsets(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, ((row.group_id, row.topic, row.partition), (
            row.committed_offset, row.leader_epoch, row.topic_id, row.metadata, millis(row.commit_time),
            millis(row.expire_time), row.log_offset,
        )))
        for row in refreshed.now(CURRENT_OFFSETS).collect()
    ]  # fmt: skip
    compare(fleet, found, lambda records: reference.current_offsets(records).items())


def test_why_offsets_went(refreshed: Refreshed, fleet: Fleet) -> None:
    rows = [row for each in refreshed.causes for row in each.collect()]
    compare(fleet, [(row[0], tuple(row[1:])) for row in rows], lambda records: reference.removed_by(records).items())


def test_group_events(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, (row.group_id, millis(row.event_time), row.event, row.member_id, row.members, row.log_offset))
        for row in refreshed.rows(GROUP_EVENTS).collect()
    ]
    compare(fleet, found, lambda records: map(tuple, reference.events(records)))


def test_groups_and_members(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, (row.group_id, (
            row.group_type, row.group_state, row.members, row.group_epoch if row.generation is None else row.generation,
            row.partitions, millis(row.last_commit_time), millis(row.last_rebalance_time),
        )))
        for row in refreshed.now(GROUPS).collect()
    ]  # fmt: skip
    compare(fleet, found, lambda records: reference.groups(records).items())
    people = refreshed.now(MEMBERS).select("cluster", "group_id", "group_type", "member_id", "member_epoch")
    compare(fleet, [(row[0], tuple(row[1:])) for row in people.collect()], reference.members)


def test_rates(refreshed: Refreshed, fleet: Fleet) -> None:
    """A minute of which rows came late has several."""
    counted: dict[tuple[str, str | None, int], list[int]] = defaultdict(lambda: [0] * 6)
    for row in refreshed.rows(RATES).collect():
        key = (row.cluster, row.group_id, (millis(row.minute) or 0) // MINUTE)
        counted[key] = [one + other for one, other in zip(counted[key], row[3:], strict=True)]
    found = [(cluster, ((group, minute), counts)) for (cluster, group, minute), counts in counted.items()]
    compare(fleet, found, lambda records: reference.rates(records).items())


def test_rewinds(refreshed: Refreshed, fleet: Fleet) -> None:
    names = ("group_id", "topic", "partition", "from_offset", "to_offset", "records", "direction", "was_empty")
    found = refreshed.rows(REWINDS).select("cluster", *names, "log_offset").collect()
    compare(fleet, [(row[0], tuple(row[1:])) for row in found], reference.rewinds)


def test_how_groups_commit(refreshed: Refreshed, fleet: Fleet) -> None:
    """What a status is judged by."""
    wanted, found = paces(fleet.commits), refreshed.now(PACES)
    rows = [sorted(map(repr, each.select(*PACES.names).collect())) for each in (wanted, found)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > COUNT


def refreshed_twice(spark: SparkSession, trace: Trace, cut: int) -> Refreshed:
    """A trace that is read up to an offset, and then to its end."""
    fleet = Fleet({}, trace.commits(spark), trace.group_records(spark), trace.commits(spark))
    found = Refreshed(spark, fleet)
    found.refresh({}, {"c": {0: cut}})
    found.refresh({"c": {0: cut}}, {"c": {0: 2**40}})
    return found


def test_a_member_that_is_gone_changed_its_group(spark: SparkSession) -> None:
    """The offset goes soon after that, so it has expired; long after its time alone that would be unknown."""
    trace = Trace()
    trace.record(0, "ConsumerGroupMetadata", group_epoch=1)
    trace.record(0, "ConsumerGroupMemberMetadata", member_id="a", client_id="app")
    trace.commit(1, 5)
    left = trace.record(30 * DAY, "ConsumerGroupMemberMetadata", member_id="a", gone=True)
    trace.commit(30 * DAY + 60, None)
    found = refreshed_twice(spark, trace, left + 1)
    assert [row.removed_by for each in found.causes for row in each.collect()] == ["expired"]


def test_a_group_that_was_there_is_not_new_at_its_second_epoch(spark: SparkSession) -> None:
    """Not even where the clock has gone back meanwhile."""
    trace = Trace()
    trace.record(0, "ShareGroupMemberMetadata", member_id="a", client_id="app")
    trace.record(0, "ShareGroupMemberMetadata", member_id="a", gone=True)
    last = trace.record(20, "ShareGroupMemberMetadata", member_id="b", gone=True)
    trace.record(10, "ShareGroupMemberMetadata", member_id="c", client_id="app")
    trace.record(10, "ShareGroupMetadata", group_epoch=2)
    found = refreshed_twice(spark, trace, last + 1).rows(GROUP_EVENTS).orderBy("log_offset", "event").collect()
    assert [(row.event, row.member_id) for row in found] == [
        ("joined", "a"), ("emptied", ""), ("left", "a"), ("left", "b"), ("joined", "c")
    ]  # fmt: skip
