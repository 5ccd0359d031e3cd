"""What the report says to act on, of rows as the tables have them."""

import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from groupkeeper.pipeline.report import findings, front
from groupkeeper.pipeline.report.model import Finding, Group
from groupkeeper.pipeline.tables import RATES
from groupkeeper.rules.urgency import Urgency
from groupkeeper.shell import NO_WAYS, Ways, way_of_servers

WHERE = "--bootstrap-server HOST:PORT"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
Row = Mapping[str, Any]
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


def found_of(
    groups: Iterable[Group], rows: Iterable[Row] = (), judged: Iterable[Row] = (), retention_h: int = 0,
    lost: Mapping[tuple[str, str], int] = {}, ways: Ways = NO_WAYS,
) -> list[Finding]:  # fmt: skip
    """What is to be acted on. `retention_h`: of all topics, 0: not known."""
    kept = [{"cluster": "c", "topic": row["topic"], "retention_ms": retention_h * HOUR_MS or None} for row in rows]
    return findings.acting(findings.reported(groups, rows, judged, kept), lost, {}, ways)


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"retention_margin_ms": 3 * HOUR_MS, **GROWS}, "6 h 18 min"),
        ({"retention_margin_ms": 5 * 24 * HOUR_MS, **GROWS}, None),  # it is read long before, and so on for 10 days
        ({"retention_margin_ms": 5 * 24 * HOUR_MS, **GROWS, "lag": 10**9}, "5 d"),  # it takes longer to get to the last
        ({"retention_margin_ms": 3 * HOUR_MS}, None),  # the oldest record stays as old as it is
        ({"retention_margin_ms": 3 * HOUR_MS, "consumed_per_s": 0.0}, "3 h"),
        ({"retention_margin_ms": 3 * HOUR_MS, **SHRINKS, "lag": 2 * 3600 * 20}, None),
        ({"retention_margin_ms": 3 * HOUR_MS, **SHRINKS, "lag": 4 * 3600 * 20}, "3 h"),
        # A backlog that is not reduced is new all the time: how long it would take until nothing is left is no matter.
        ({"retention_margin_ms": 6 * 24 * HOUR_MS, "catch_up_ms": 8 * 24 * HOUR_MS}, None),
        ({"retention_margin_ms": 8 * 24 * HOUR_MS, **GROWS}, None),
        ({"retention_margin_ms": 3 * HOUR_MS, "trend": None}, None),
    ],
)
def test_who_loses_records_is_who_retention_overtakes(values: dict[str, Any], left: str | None) -> None:
    """Later than within the hour: a sentence more."""
    for status, kind in (("lagging", Urgency.BEHIND), ("ok", Urgency.SLIPPING)):
        found = found_of([a_group("g", status)], [a_row("g", **values)])
        told = [f"Unread records of orders-7 may be removed in {left}." in each.note for each in found]
        assert told == [left is not None] or (not found and left is None)
        assert all(each.kind == kind for each in found)


@pytest.mark.parametrize(("margin_h", "is_told"), [(100, False), (80, True), (3, True), (-1, True)])
def test_what_is_not_read_is_told_when_half_of_its_time_is_over(margin_h: int, is_told: bool) -> None:
    """By default records are kept for a week: all that stand still for a minute lose some within it."""
    rows = [a_row("g", retention_margin_ms=margin_h * HOUR_MS, consumed_per_s=0.0)]
    (found,) = found_of([a_group("g")], rows, retention_h=168)
    assert ("Unread records of orders-7 may be removed" in found.note) is is_told


NOT_RATED = {"produced_per_s": None, "consumed_per_s": None, "trend": None}


@pytest.mark.parametrize(
    ("status", "margin_ms", "is_told"),
    [
        ("stopped", HOUR_MS, True),
        ("stalled", -HOUR_MS, True),
        ("lagging", HOUR_MS, False),
        ("lagging", HOUR_MS - 1, True),  # as pages say, who know no rates
        ("lagging", -HOUR_MS, True),
    ],
)
def test_before_rates_are_known_a_partition_is_overtaken_by_its_own_status(
    status: str, margin_ms: int, is_told: bool
) -> None:
    """The group is stopped: one of its partitions is. Of another one, which it reads, nothing is to be said."""
    judged = [a_status("g", 0, "stopped", HOUR_MS), a_status("g", 7, status, HOUR_MS),
              a_status("other", 7, "stopped", HOUR_MS)]  # fmt: skip
    rows = [a_row("g", retention_margin_ms=margin_ms, **NOT_RATED)]
    (found,) = found_of([a_group("g", "stopped")], rows, judged)
    assert ("Unread records of orders-7 may be removed" in found.note) is is_told
    assert not found_of([a_group("g", "ok")], [{**rows[0], "retention_margin_ms": 60_000}])


def test_the_least_time_left_stands_first_and_the_command_keeps_records_longer() -> None:
    groups = [a_group("soon"), a_group("lost", "losing"), a_group("now")]
    rows = [a_row("soon", retention_margin_ms=HOUR_MS // 4, **GROWS), a_row("now", retention_margin_ms=-1, **GROWS),
            a_row("lost", retention_margin_ms=-2, **GROWS)]  # fmt: skip
    found = found_of(groups, rows, retention_h=24, lost={("c", "lost"): 777})
    assert [(each.group_id, front.figure(each)) for each in found] == [
        ("lost", "777 records lost"), ("now", "now"), ("soon", "31 min 34 s left")
    ]  # fmt: skip
    assert {each.kind for each in found} == {Urgency.EXPIRING}
    assert found[0].note == (
        "Unread records of orders-7 may be removed at any moment. a rule. The command keeps records 7 d longer."
    )
    assert found[2].command[-1] == f"retention.ms={8 * 24 * HOUR_MS}"


def test_what_is_well_now_comes_after_what_is_not() -> None:
    groups = [a_group("late", "ok"), a_group("fast", "ok"), a_group("steep", "ok"), a_group("early"),
              a_group("still", "stopped"), a_group("fine", "ok")]  # fmt: skip
    rows = [a_row("late", **SHRINKS, catch_up_ms=5 * HOUR_MS), a_row("early", **SHRINKS, catch_up_ms=1000),
            a_row("fast", **{**GROWS, "produced_per_s": 9000.0}), a_row("steep", **GROWS),
            a_row("still", **GROWS)]  # fmt: skip
    found = found_of(groups, rows)
    assert [(each.kind, each.group_id, front.figure(each)) for each in found] == [
        ("standing", "still", "1 min stopped"), ("behind", "early", "1 min lagging"),
        ("slipping", "fast", "+8,790/s"), ("slipping", "steep", "+190/s"), ("slipping", "late", "5 h to catch up"),
    ]  # fmt: skip
    assert found[3].note == "Each second 190 more records are written than read; 2 members read 3 partitions. a rule."


def test_a_partition_that_catches_up_can_make_up_for_one_that_does_not() -> None:
    rows = [a_row("g", **GROWS), a_row("g", partition=8, produced_per_s=0.0, consumed_per_s=500.0, trend="shrinking")]
    assert found_of([a_group("g", "ok")], rows) == []


def test_a_storm_is_ten_rebalances_within_any_ten_minutes() -> None:
    def rates(group_id: str, *minutes: int) -> list[dict[str, Any]]:
        return [{"cluster": "c", "group_id": group_id, "minute": NOW + timedelta(minutes=each),
                 "completed_rebalances": 5} for each in minutes]  # fmt: skip

    rows = [*rates("split", 8, 17), *rates("slow", 0, 10, 20), *rates("worst", 3, 4, 5), *rates("once", 0)]
    table = pa.Table.from_pylist(rows, RATES.arrow).select(["cluster", "group_id", "minute", "completed_rebalances"])
    most = findings.fullest(table)
    assert most["c", "split"] == (10, NOW + timedelta(minutes=8))
    assert most["c", "slow"][0] == 5
    groups = [a_group(name) for name in ("split", "slow", "worst", "once", "quiet")]
    known = findings.reported([*groups, a_group("now", "unstable", rule="11 rebalances")], [], [], [])
    found = findings.calmed(known, {**most, ("c", "now"): (11, NOW)})
    assert [(each.group_id, each.value) for each in found] == [("worst", 15), ("split", 10)]
    assert found[0].note == "4 rebalances in the whole time shown; it is lagging now"
    (now,) = (each for each in findings.acting(known, {}, {("c", "now"): (11, NOW)}) if each.group_id == "now")
    assert (now.kind, front.figure(now), now.time) == ("storm", "11 rebalances in 10 min", NOW)
    assert now.note == "11 rebalances: members come and go, or take too long between two polls."
    assert findings.fullest(table.slice(0, 0)) == {}


def test_transactions_are_told_when_they_hold_up_groups_or_hang() -> None:
    usual = {"cluster": "c", "topic": "orders", "partition": 1, "producer_id": 5, "transactional_id": "tx",
             "first_offset": 40, "held_offsets": 60, "started_time": NOW, "open_ms": HOUR_MS, "timeout_ms": 900_000,
             "is_hanging": False, "groups": 0}  # fmt: skip
    rows = [
        usual,
        {**usual, "groups": 2},
        {**usual, "is_hanging": True, "transactional_id": None, "timeout_ms": None, "held_offsets": 70},
    ]
    hanging, holding = findings.held(rows)
    assert shlex.join(hanging.command) == f"groupkeeper transactions abort --partition orders:1 {WHERE}"
    assert shlex.join(holding.command) == f"groupkeeper transactions abort {WHERE} tx"
    assert (front.figure(hanging), hanging.partition) == ("70 offsets held", "orders-1")
    assert (
        hanging.note == "producer 5, open for 1 h (hanging); no coordinator has it: nothing will end it; 0 groups wait"
    )
    assert holding.note == "tx, open for 1 h (late); its coordinator should have aborted it after 15 min; 2 groups wait"
    (young,) = findings.held([{**rows[1], "open_ms": 60_000, "groups": 1}])
    assert young.note == "tx, open for 1 min (open); its coordinator aborts it after 15 min; 1 group waits"
    assert shlex.join(young.command) == f"groupkeeper transactions describe {WHERE} tx"


def test_a_stalled_group_gets_the_plan_that_skips_its_record() -> None:
    groups = [a_group("a", "stopped", members=0), a_group("b", "stalled", lag_ms=HOUR_MS), a_group("c", "ok")]
    stalled, stopped = found_of(groups, [], [a_status("b", 7, "stalled", HOUR_MS)])
    assert shlex.join(stalled.command) == f"groupkeeper plan reset --topic orders:7 --shift-by 1 {WHERE} b"
    assert stopped.note == "The group has no members, and 500 records wait: start its consumers, and watch them join."
    assert shlex.join(stopped.command) == f"groupkeeper groups why {WHERE} a"


def test_a_group_waits_as_its_partition_that_has_its_status() -> None:
    """Another one may have waited longer, and get on: its record would have been skipped."""
    rows = [
        a_status("b", 0, "lagging", 9 * HOUR_MS),
        a_status("b", 1, "stalled", HOUR_MS, since=EARLIER),
        a_status("b", 2, "stalled", 2 * HOUR_MS, since=NOW),
        a_status("other", 3, "stalled", 3 * HOUR_MS),
    ]
    (found,) = found_of([a_group("b", "stalled", lag_ms=9 * HOUR_MS)._replace(since=EARLIER)], [], rows)
    assert (found.partition, found.value, found.time) == ("orders-2", 2 * HOUR_MS, NOW)
    assert shlex.join(found.command) == f"groupkeeper plan reset --topic orders:2 --shift-by 1 {WHERE} b"


def a_status(group: str, partition: int, status: str, lag_ms: int, since: datetime = NOW) -> dict[str, Any]:
    """A row of tables.STATUS."""
    key = {"cluster": "c", "group_id": group, "topic": "orders", "partition": partition}
    return {**key, "status": status, "lag_ms": lag_ms, "since_time": since}


def test_commands_reach_the_cluster_that_was_named_whatever_the_group_is_called() -> None:
    ways = {"c": way_of_servers("localhost:9092", "/etc/client.properties")}
    row = a_row("-g", topic="-orders", retention_margin_ms=-1, **GROWS)
    (found,) = found_of([a_group("-g")], [row], retention_h=24, ways=ways)
    reached = "--bootstrap-server localhost:9092 --command-config /etc/client.properties"
    assert shlex.join(found.command).startswith(f"kafka-configs.sh {reached} --alter")
    assert "--entity-name=-orders" in found.command
    (found,) = found_of([a_group("-g", "stopped")], ways=ways)
    assert shlex.join(found.command) == f"groupkeeper groups why {reached} -- -g"
    (found,) = found_of([a_group("g's[0]", "stopped")])
    assert shlex.join(found.command) == f"""groupkeeper groups why {WHERE} 'g'"'"'s[0]'"""
    (found,) = found_of([a_group("g[0]")])
    assert shlex.join(found.command) == f"groupkeeper groups offsets --trend 10s {WHERE} 'g[[]0]'"  # it takes globs
