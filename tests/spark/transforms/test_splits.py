"""Refresh after refresh of random histories, cut anywhere: the same tables as those of one replay of everything."""

import os
import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.spark.transforms import reference
from tests.spark.transforms.histories import BEGIN, MINUTE, Logged
from tests.spark.transforms.test_reference import SEED, Fleet, compare, fleet_of, millis
from tests.spark.transforms.traces import DAY, Trace, listed

from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.steps import STEPS, Job, RefreshContext, rows_of
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    GROUP_EVENTS,
    GROUP_RECORDS,
    GROUPS,
    MEMBERS,
    QUALITY,
    RATES,
    REWINDS,
    Table,
)
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import between
from groupkeeper.pipeline.transforms.tombstones import causes

COUNT = int(os.environ.get("PIPELINE_HISTORIES", "400"))
TIMES = int(os.environ.get("PIPELINE_SPLITS", "2"))
"""So many refreshes come before the last one."""

MADE = [step for step in STEPS if step.job is not Job.ASKED and step.table is not QUALITY]
"""What tasks make of the history; quality is of one refresh."""

Cut = dict[str, dict[int, int]]


class Refreshed:
    """What a run of refreshes keeps, in memory; each is what the steps of the pipeline make (steps.Sources). Clusters
    answer nothing.
    """

    failed = ()

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._then: dict[str, pa.Table] = {}
        self._new: dict[str, pa.Table] = {}
        self._now: dict[str, pa.Table] = {}
        self.added: dict[str, list[pa.Table]] = defaultdict(list)
        self.causes: list[pa.Table] = []

    def new(self, table: Table) -> pa.Table:
        return self._new[table.name]

    def then(self, table: Table) -> pa.Table:
        return self._then.get(table.name, table.arrow.empty_table())

    before = then

    def now(self, table: Table) -> pa.Table:
        return self._now.get(table.name, table.arrow.empty_table())

    def rows(self, table: Table) -> list[Any]:
        """All rows of a table that rows are added to."""
        return listed(pa.concat_tables([self.then(table), *self.added[table.name]]))

    def refresh(self, made_to: Cut, read_to: Cut) -> None:
        for table, whole in ((COMMITS, self._fleet.commits), (GROUP_RECORDS, self._fleet.group_records)):
            self._new[table.name] = between(whole, made_to, read_to)
        self._append_causes()
        clusters = Clusters(parse_options({"kafka.bootstrap.servers": "none:1", "rows": "decoded"}), {}, {})
        given = RefreshContext(clusters, {}, made_to, read_to, at_ms=BEGIN + 99_000 * DAY)
        opened: dict[str, pa.Table] = {}
        for step in MADE:
            made = rows_of(step.made(self, given))
            rows = made.select(step.table.names)
            if step.adds:
                self.added[step.table.name].append(rows.filter(pc.invert(made[OPEN])))
                opened[step.table.name] = rows.filter(made[OPEN])
            self._now[step.table.name] = rows
        self._then = self._now | opened

    def _append_causes(self) -> None:
        """As the history's writer tells why offsets went: of what is carried, and of what is new."""
        new, then = self.new, self.then
        told = causes(new(COMMITS), then(LAST_COMMITS), new(GROUP_RECORDS), then(LAST_RECORDS), {})
        self.causes.append(told)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return fleet_of(COUNT)


@pytest.fixture(scope="module")
def refreshed(fleet: Fleet) -> Refreshed:
    rng = random.Random(SEED)
    cuts = {name: cuts_of(records, rng) for name, records in fleet.records.items()}
    found = Refreshed(fleet)
    before: Cut = {}
    for number in range(TIMES + 1):
        cut = {name: {0: own[number]} for name, own in cuts.items()}
        found.refresh(before, cut)
        before = cut
    return found


def cuts_of(records: list[Logged], rng: random.Random) -> list[int]:
    """Offsets up to which refreshes come, the last one beyond the end. What is written at once, when a group gets
    another type, is read at once.
    """
    times = [one.time_ms for one in records]
    places = [after.offset for place, after in enumerate(records) if place and not {*times[:place]} & {*times[place:]}]
    chosen = sorted(rng.choice(places) if places else 0 for _ in range(TIMES))
    return [*chosen, 2**40]


def test_current_offsets(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, ((row.group_id, row.topic, row.partition), (
            row.committed_offset, row.leader_epoch, row.topic_id, row.metadata, millis(row.commit_time),
            millis(row.expire_time), row.log_offset,
        )))
        for row in listed(refreshed.now(CURRENT_OFFSETS))
    ]  # fmt: skip
    compare(fleet, found, lambda records: reference.current_offsets(records).items())


def test_why_offsets_went(refreshed: Refreshed, fleet: Fleet) -> None:
    rows = [(row.cluster, (row.log_offset, row.removed_by)) for each in refreshed.causes for row in listed(each)]
    compare(fleet, rows, lambda records: reference.removed_by(records).items())
    assert {cause for _, (_, cause) in rows} == {"expired", "deleted", "unknown"}


def test_group_events(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, (row.group_id, millis(row.event_time), row.event, row.member_id, row.members, row.log_offset))
        for row in refreshed.rows(GROUP_EVENTS)
    ]
    compare(fleet, found, lambda records: map(tuple, reference.events(records)))
    kinds = {row[2] for _, row in found}
    assert kinds == {"created", "joined", "left", "rebalanced", "epoch_bumped", "emptied", "deleted", "migrated"}


def test_groups_and_members(refreshed: Refreshed, fleet: Fleet) -> None:
    found = [
        (row.cluster, (row.group_id, (
            row.group_type, row.group_state, row.members, row.group_epoch if row.generation is None else row.generation,
            row.partitions, millis(row.last_commit_time), millis(row.last_rebalance_time),
        )))
        for row in listed(refreshed.now(GROUPS))
    ]  # fmt: skip
    compare(fleet, found, lambda records: reference.groups(records).items())
    people = [
        (row.cluster, (row.group_id, row.group_type, row.member_id, row.member_epoch))
        for row in listed(refreshed.now(MEMBERS))
    ]
    compare(fleet, people, reference.members)


def test_rates(refreshed: Refreshed, fleet: Fleet) -> None:  # K496-60, K496-61
    """A minute of which rows came late has several."""
    counted: dict[tuple[str, str | None, int], list[int]] = defaultdict(lambda: [0] * 6)
    for row in refreshed.rows(RATES):
        key = (row.cluster, row.group_id, (millis(row.minute) or 0) // MINUTE)
        counted[key] = [one + other for one, other in zip(counted[key], [*vars(row).values()][3:], strict=True)]
    found = [(cluster, ((group, minute), counts)) for (cluster, group, minute), counts in counted.items()]
    compare(fleet, found, lambda records: reference.rates(records).items())


def test_rewinds(refreshed: Refreshed, fleet: Fleet) -> None:
    names = ("group_id", "topic", "partition", "from_offset", "to_offset", "records", "direction", "was_empty")
    found = [
        (row.cluster, tuple(getattr(row, name) for name in (*names, "log_offset"))) for row in refreshed.rows(REWINDS)
    ]
    compare(fleet, found, reference.rewinds)
    assert {row[6] for _, row in found} == {"back", "ahead"}


def test_refreshes_make_what_one_makes(refreshed: Refreshed, fleet: Fleet) -> None:
    once = Refreshed(fleet)
    once.refresh({}, {cluster: {0: 2**40} for cluster in fleet.records})
    differ, repeated = [], set()
    for step in MADE:
        found = [of.rows(step.table) if step.adds else listed(of.now(step.table)) for of in (refreshed, once)]
        many, one = (sorted(map(repr, rows)) for rows in found)
        if step.is_published and many != one:
            differ.append(step.table.name)
        keys = [tuple(getattr(row, name) for name in step.table.key) for row in found[1]] if step.is_published else []
        repeated |= {step.table.name} if len({*keys}) < len(keys) else set()
    assert repeated == set(), "several rows have the same `key`"
    assert differ == [], "rows of groups of which a refresh has no records come from `then`, and rows once only"


def refreshed_twice(trace: Trace, cut: int) -> Refreshed:
    """A trace that is read up to an offset, and then to its end."""
    found = Refreshed(Fleet({}, trace.commits(), trace.group_records(), GROUP_EVENTS.arrow.empty_table()))
    found.refresh({}, {"c": {0: cut}})
    found.refresh({"c": {0: cut}}, {"c": {0: 2**40}})
    return found


def test_a_member_that_is_gone_changed_its_group() -> None:
    """The offset goes soon after that, so it has expired; long after its time alone that would be unknown."""
    trace = Trace()
    trace.record(0, "ConsumerGroupMetadata", group_epoch=1)
    trace.record(0, "ConsumerGroupMemberMetadata", member_id="a", client_id="app")
    trace.commit(1, 5)
    left = trace.record(30 * DAY, "ConsumerGroupMemberMetadata", member_id="a", gone=True)
    trace.commit(30 * DAY + 60, None)
    found = refreshed_twice(trace, left + 1)
    assert [row.removed_by for each in found.causes for row in listed(each)] == ["expired"]


def test_a_group_that_was_there_is_not_new_at_its_second_epoch() -> None:
    """Not even where the clock has gone back meanwhile."""
    trace = Trace()
    trace.record(0, "ShareGroupMemberMetadata", member_id="a", client_id="app")
    trace.record(0, "ShareGroupMemberMetadata", member_id="a", gone=True)
    last = trace.record(20, "ShareGroupMemberMetadata", member_id="b", gone=True)
    trace.record(10, "ShareGroupMemberMetadata", member_id="c", client_id="app")
    trace.record(10, "ShareGroupMetadata", group_epoch=2)
    rows = refreshed_twice(trace, last + 1).rows(GROUP_EVENTS)
    found = sorted(rows, key=lambda row: (row.log_offset, row.event))
    assert [(row.event, row.member_id) for row in found] == [
        ("joined", "a"), ("emptied", ""), ("left", "a"), ("left", "b"), ("joined", "c")
    ]  # fmt: skip
