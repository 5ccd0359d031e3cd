"""What the report says to act on, of rows as the tables have them."""

import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from groupkeeper.pipeline.report import front, impact
from groupkeeper.pipeline.report.model import Group, Stale
from groupkeeper.pipeline.tables import RATES
from groupkeeper.shell import way_of_servers

WHERE = "--bootstrap-server HOST:PORT"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
EARLIER = NOW - timedelta(hours=9)


def a_group(group_id: str, status: str = "lagging", **values: Any) -> Group:
    usual = Group("c", group_id, "consumer", "Stable", 2, 3, status, "a rule", NOW, 500, 60_000, 0, NOW, 4, NOW)
    return usual._replace(**values)


def a_row(group_id: str, **values: Any) -> dict[str, Any]:
    """A partition that keeps its lag, and of which retention takes nothing."""
    usual = {"cluster": "c", "group_id": group_id, "topic": "orders", "partition": 7, "lag": 500, "lag_ms": 60_000,
             "produced_per_s": 10.0, "consumed_per_s": 10.0, "trend": "steady", "catch_up_ms": None,
             "retention_margin_ms": None, "measured_time": NOW}  # fmt: skip
    return {**usual, **values}


GROWS = {"produced_per_s": 400.0, "consumed_per_s": 210.0, "trend": "growing"}
SHRINKS = {"consumed_per_s": 20.0, "trend": "shrinking"}


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ({"retention_margin_ms": 3 * HOUR_MS, **GROWS}, True),
        ({"retention_margin_ms": 5 * 24 * HOUR_MS, **GROWS}, False),  # it is read long before, and so on for 10 days
        ({"retention_margin_ms": 5 * 24 * HOUR_MS, **GROWS, "lag": 10**9}, True),  # it takes longer to get to the last
        ({"retention_margin_ms": 3 * HOUR_MS}, False),  # the oldest record stays as old as it is
        ({"retention_margin_ms": 3 * HOUR_MS, "consumed_per_s": 0.0}, True),
        ({"retention_margin_ms": 3 * HOUR_MS, **SHRINKS, "lag": 2 * 3600 * 20}, False),
        ({"retention_margin_ms": 3 * HOUR_MS, **SHRINKS, "lag": 4 * 3600 * 20}, True),
        # A backlog that is not reduced is new all the time: how long it would take until nothing is left is no matter.
        ({"retention_margin_ms": 6 * 24 * HOUR_MS, "catch_up_ms": 8 * 24 * HOUR_MS}, False),
        ({"retention_margin_ms": 8 * 24 * HOUR_MS, **GROWS}, False),
        ({"retention_margin_ms": 3 * HOUR_MS, "trend": None}, False),
        ({"retention_margin_ms": -HOUR_MS}, True),
    ],
)
def test_who_loses_records_is_who_retention_overtakes(values: dict[str, Any], is_told: bool) -> None:
    found = impact.losing([a_group("g")], [a_row("g", **values)], [], [], [])
    assert [(each.group_id, each.place) for each in found] == [("g", "orders-7")] * is_told


@pytest.mark.parametrize(("margin_h", "is_told"), [(100, False), (80, True), (3, True), (-1, True)])
def test_what_is_not_read_is_told_when_half_of_its_time_is_over(margin_h: int, is_told: bool) -> None:
    """By default records are kept for a week: all that stand still for a minute lose some within it."""
    retention = [{"cluster": "c", "topic": "orders", "retention_ms": 168 * HOUR_MS}]
    rows = [a_row("g", retention_margin_ms=margin_h * HOUR_MS, consumed_per_s=0.0)]
    assert len(impact.losing([a_group("g")], rows, [], retention, [])) == is_told


def test_how_long_it_takes_until_retention_gets_ahead() -> None:
    rows = [a_row("g", retention_margin_ms=3 * HOUR_MS, **{**GROWS, "consumed_per_s": 200.0})]
    (found,) = impact.losing([a_group("g")], rows, [], [], [])
    assert (found.value, front.figure(found)) == (6 * HOUR_MS, "6 h left")
    assert found.note == "500 records to read, and more arrive than are read: in 6 h retention gets ahead of the group"


NOT_RATED = {"produced_per_s": None, "consumed_per_s": None, "trend": None}


@pytest.mark.parametrize(
    ("status", "margin_ms", "why"),
    [
        ("stopped", HOUR_MS, "which the group does not read"),
        ("stalled", -HOUR_MS, "which the group does not read"),
        ("lagging", HOUR_MS, None),
        ("lagging", -HOUR_MS, ""),
    ],
)
def test_before_rates_are_known_a_partition_is_overtaken_by_its_own_status(
    status: str, margin_ms: int, why: str | None
) -> None:
    """The group is stopped: one of its partitions is. Of another one, which it reads, nothing is to be said."""
    judged = [a_verdict("g", 0, "stopped", HOUR_MS), a_verdict("g", 7, status, HOUR_MS),
              a_verdict("other", 7, "stopped", HOUR_MS)]  # fmt: skip
    rows = [a_row("g", retention_margin_ms=margin_ms, **NOT_RATED)]
    found = impact.losing([a_group("g", "stopped")], rows, [], [], judged)
    assert [each.note.partition(", ")[2] for each in found] == ([] if why is None else [why])


def test_the_least_time_left_stands_first_after_those_that_lose_already() -> None:
    groups = [a_group("soon"), a_group("lost", "losing"), a_group("now")]
    rows = [a_row("soon", retention_margin_ms=2 * HOUR_MS, **GROWS), a_row("now", retention_margin_ms=-1, **GROWS),
            a_row("lost", retention_margin_ms=-1, **GROWS)]  # fmt: skip
    gone = [Stale("c", "lost", "below_log_start", 1, ("orders",), None, None, 777)]
    retention = [{"cluster": "c", "topic": "orders", "retention_ms": 24 * HOUR_MS}]
    found = impact.losing(groups, rows, gone, retention, [])
    assert [(each.group_id, front.figure(each)) for each in found] == [
        ("lost", "777 records lost"), ("now", "now"), ("soon", "4 h 12 min left")
    ]  # fmt: skip
    assert found[2].command[-1] == f"retention.ms={8 * 24 * HOUR_MS}"


def test_what_grows_comes_before_what_catches_up_late() -> None:
    groups = [a_group("late"), a_group("fast", "ok"), a_group("steep"), a_group("early"), a_group("still", "stopped")]
    rows = [a_row("late", **SHRINKS, catch_up_ms=5 * HOUR_MS), a_row("early", **SHRINKS, catch_up_ms=1000),
            a_row("fast", **{**GROWS, "produced_per_s": 9000.0}), a_row("steep", **GROWS),
            a_row("still", **GROWS)]  # fmt: skip
    found = impact.behind(groups, rows)
    assert [(each.group_id, front.figure(each)) for each in found] == [
        ("steep", "+190/s"), ("fast", "+8,790/s"), ("late", "5 h to catch up")
    ]  # fmt: skip
    assert "never catches up: 400/s arrive, 210/s are read; 500 to read; 2 members for 3 partitions" in found[0].note


def test_a_partition_that_catches_up_can_make_up_for_one_that_does_not() -> None:
    rows = [a_row("g", **GROWS), a_row("g", partition=8, produced_per_s=0.0, consumed_per_s=500.0, trend="shrinking")]
    assert impact.behind([a_group("g")], rows) == []


def test_a_storm_is_ten_rebalances_within_any_ten_minutes() -> None:
    def rates(group_id: str, *minutes: int) -> list[dict[str, Any]]:
        return [{"cluster": "c", "group_id": group_id, "minute": NOW + timedelta(minutes=each),
                 "completed_rebalances": 5} for each in minutes]  # fmt: skip

    rows = [*rates("split", 8, 17), *rates("slow", 0, 10, 20), *rates("worst", 3, 4, 5), *rates("once", 0)]
    table = pa.Table.from_pylist(rows, RATES.arrow).select(["cluster", "group_id", "minute", "completed_rebalances"])
    most = impact.fullest(table)
    assert most["c", "split"] == (10, NOW + timedelta(minutes=8))
    assert most["c", "slow"][0] == 5
    groups = [a_group(name) for name in ("split", "slow", "worst", "once", "quiet")]
    found = impact.storms(groups, most)
    assert [(each.group_id, each.value) for each in found] == [("worst", 15), ("split", 10)]
    assert impact.fullest(table.slice(0, 0)) == {}


def test_transactions_are_told_when_they_hold_up_groups_or_hang() -> None:
    usual = {"cluster": "c", "topic": "orders", "partition": 1, "producer_id": 5, "transactional_id": "tx",
             "first_offset": 40, "held_offsets": 60, "started_time": NOW, "open_ms": HOUR_MS, "timeout_ms": 900_000,
             "is_hanging": False, "groups": 0}  # fmt: skip
    rows = [usual, {**usual, "groups": 2}, {**usual, "is_hanging": True, "transactional_id": None, "held_offsets": 70}]
    hanging, holding = impact.held(rows)
    assert shlex.join(hanging.command) == f"groupkeeper transactions abort --partition orders:1 {WHERE}"
    assert shlex.join(holding.command) == f"groupkeeper transactions describe --topic orders {WHERE} tx"
    assert (front.figure(hanging), hanging.place) == ("70 offsets held", "orders-1")
    assert "2 groups wait; its coordinator aborts it after 15 min" in holding.note


def test_a_stalled_group_gets_the_plan_that_skips_its_record() -> None:
    groups = [a_group("a", "stopped", members=0), a_group("b", "stalled", lag_ms=HOUR_MS), a_group("c", "ok")]
    stalled, stopped = impact.waiting(groups, [a_verdict("b", 7, "stalled", HOUR_MS)])
    assert shlex.join(stalled.command) == f"groupkeeper plan reset --topic orders:7 --shift-by 1 {WHERE} b"
    assert stopped.note.endswith("; start its consumers")
    for kind, advice in (("simple", "check the program"), ("spark", "check in Spark whether it runs")):
        group = a_group("a", "stopped", members=0)._replace(group_type=kind)
        (found,) = impact.waiting([group], [])
        assert advice in found.note
        assert "start its consumers" not in found.note


def test_a_group_waits_as_its_partition_that_has_its_status() -> None:
    """Another one may have waited longer, and get on: its record would have been skipped."""
    rows = [
        a_verdict("b", 0, "lagging", 9 * HOUR_MS),
        a_verdict("b", 1, "stalled", HOUR_MS, since=EARLIER),
        a_verdict("b", 2, "stalled", 2 * HOUR_MS, since=NOW),
        a_verdict("other", 3, "stalled", 3 * HOUR_MS),
    ]
    (found,) = impact.waiting([a_group("b", "stalled", lag_ms=9 * HOUR_MS)._replace(since=EARLIER)], rows)
    assert (found.place, found.value, found.time) == ("orders-2", 2 * HOUR_MS, NOW)
    assert shlex.join(found.command) == f"groupkeeper plan reset --topic orders:2 --shift-by 1 {WHERE} b"


def a_verdict(group: str, partition: int, status: str, lag_ms: int, since: datetime = NOW) -> dict[str, Any]:
    """A row of tables.STATUS."""
    place = {"cluster": "c", "group_id": group, "topic": "orders", "partition": partition}
    return {**place, "status": status, "lag_ms": lag_ms, "since_time": since}


def test_commands_reach_the_cluster_that_was_named_whatever_the_group_is_called() -> None:
    ways = {"c": way_of_servers("localhost:9092", "/etc/client.properties")}
    row = a_row("-g", topic="-orders", retention_margin_ms=-1, **GROWS)
    retention = [{"cluster": "c", "topic": "-orders", "retention_ms": 24 * HOUR_MS}]
    (found,) = impact.losing([a_group("-g")], [row], [], retention, [], ways)
    reached = "--bootstrap-server localhost:9092 --command-config /etc/client.properties"
    assert shlex.join(found.command).startswith(f"kafka-configs.sh {reached} --alter")
    assert "--entity-name=-orders" in found.command
    (found,) = impact.waiting([a_group("-g", "stopped")], [], ways)
    assert shlex.join(found.command) == f"groupkeeper groups members {reached} -- -g"
    (found,) = impact.waiting([a_group("g's", "stopped")], [])
    assert shlex.join(found.command) == """groupkeeper groups members --bootstrap-server HOST:PORT 'g'"'"'s'"""
