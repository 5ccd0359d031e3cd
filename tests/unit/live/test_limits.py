"""Limits that groups are to keep: broken by what is known, and unknown where the answer hangs on what isn't."""

import pytest
from tests.unit.live.views import described, member, row, snapshot, view

from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.live.limits import GroupLimits, judge
from groupkeeper.live.model import GroupView, Stood, Wait
from groupkeeper.operations.problems import Problem
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.rules.limits import Measure, Verdict

NOW_MS = 1_700_000_000_000
LEADERLESS = row("t", 9, 5, None)._replace(failure=LeaderNotAvailable())
PROBLEM = Problem("LEADER_NOT_AVAILABLE", "no leader", "g", "t", 9)


def found(group: GroupView, **limits: object) -> list[tuple[str, str, object]]:
    findings = judge(snapshot(group, at_ms=NOW_MS), GroupLimits(**limits))  # type: ignore[arg-type]
    return [(finding.measure.value, finding.verdict.value, finding.value) for finding in findings]


def test_a_limit_is_broken_beyond_it_and_not_at_it() -> None:
    group = view("g", [row("t", 0, 40), row("t", 1, 90)], [Wait(6000), Wait(2000)])
    assert found(group, max_lag=70) == [("lag", "ok", 70)]
    assert found(group, max_lag=69) == [("lag", "broken", 70)]
    assert found(group, max_time_lag_ms=6000) == [("time_lag", "ok", 6000)]
    assert found(group, max_time_lag_ms=5999) == [("time_lag", "broken", 6000)]


def test_margin_and_members_are_to_be_at_least_so_much() -> None:
    consumer = member("a")
    group = view("g", [row("t", 0, 40)], [Wait(6000, False, 5000)], described("g", consumer))
    assert found(group, min_margin_ms=5000, min_members=1) == [("retention_margin", "ok", 5000), ("members", "ok", 1)]
    assert found(group, min_margin_ms=5001, min_members=2) == [
        ("retention_margin", "broken", 5000),
        ("members", "broken", 1),
    ]
    forever = view("g", [row("t", 0, 40)], [Wait(6000)])
    assert found(forever, min_margin_ms=5001) == [("retention_margin", "ok", None)]


def test_one_partition_that_stands_still_is_idle_while_others_move() -> None:
    moving = view("g", [row("t", 0, 40)], [Wait(9000)], progress_ms=NOW_MS)
    moving = moving._replace(stood={TopicPartition("t", 0): Stood(40, NOW_MS - 8000)})
    assert found(moving, max_idle_ms=7999) == [("idle", "broken", 8000)]
    late = moving._replace(waits=[Wait(1000)])  # its record came a second ago
    assert found(late, max_idle_ms=7999) == [("idle", "ok", 1000)]
    left = moving._replace(unread=frozenset({"t"}))  # no member reads the topic any more
    assert found(left, max_idle_ms=7999) == [("idle", "ok", 0)]


def test_topics_that_no_member_reads_any_more_break_no_limit() -> None:
    rows, waits = [row("left", 0, 0, start=50), row("t", 0, 95)], [Wait(900_000, margin_ms=-5), Wait(1000, margin_ms=9)]
    group = view("g", rows, waits)
    limits = {"max_lag": 5, "max_time_lag_ms": 1000, "max_lost": 0, "min_margin_ms": 9}
    assert {verdict for _, verdict, _ in found(group, **limits)} == {"broken"}
    assert found(group._replace(unread=frozenset({"left"})), **limits) == [
        ("lag", "ok", 5), ("time_lag", "ok", 1000), ("lost", "ok", 0), ("retention_margin", "ok", 9)
    ]  # fmt: skip
    assert {verdict for _, verdict, _ in found(group._replace(unread=frozenset({"left", "t"})), **limits)} == {"ok"}


def test_a_status() -> None:
    late = view("g", [row("t", 0, 40)], [Wait(400_000)], progress_ms=NOW_MS)
    assert found(late, statuses=frozenset({"lagging", "stopped"})) == [("status", "broken", "lagging")]
    assert found(late, statuses=frozenset({"stopped"})) == [("status", "ok", "lagging")]
    unknown = view("g", [row("t", 0, None)])
    assert found(unknown, statuses=frozenset({"stopped"})) == [("status", "unknown", "unknown")]


def test_states() -> None:
    assert found(view(state=GroupState.EMPTY), states=frozenset({GroupState.STABLE})) == [("state", "broken", "Empty")]
    both = frozenset({GroupState.STABLE, GroupState.EMPTY})
    assert found(view(state=GroupState.EMPTY), states=both) == [("state", "ok", "Empty")]
    assert found(view(state=None), states=both) == [("state", "unknown", None)]


def test_rebalances_idleness_and_what_the_lag_lacks() -> None:
    group = view("g", [row("t", 0, 40, start=50), row("t", 1, None)], rebalances=3, progress_ms=NOW_MS - 9000)
    limits = {"max_rebalances": 2, "max_idle_ms": 8000, "max_uncommitted": 99, "max_lost": 9}
    assert found(group, **limits) == [
        ("uncommitted", "broken", 100),
        ("lost", "broken", 10),
        ("idle", "broken", 9000),
        ("rebalances", "broken", 3),
    ]
    done = view("g", [row("t", 0, 100)], progress_ms=NOW_MS - 9000)
    assert found(done, max_idle_ms=8000) == [("idle", "ok", 0)]  # nothing waits


@pytest.mark.parametrize(
    ("group", "limits"),
    [
        (view("g", [row("t", 0, 99), LEADERLESS], [Wait(5), Wait(None)], problems=(PROBLEM,)), {"max_lag": 10}),
        (view("g", [row("t", 0, 99)], [Wait(None)]), {"max_time_lag_ms": 10}),
        (view("g", [row("t", 0, 99)], [Wait(5, False, None, False)]), {"min_margin_ms": 10}),
        (view("g", problems=(PROBLEM,)), {"max_lag": 10}),
        (view("g", [row("t", 0, 101)]), {"max_lag": 10}),
        (view("g", [row("t", 0, 101)]), {"max_time_lag_ms": 10}),
        *(
            (view("g", [row("t", 0, 100), row("t", 1, None)]), {limit: 10})  # nothing is committed of 100 records
            for limit in ("max_lag", "max_time_lag_ms", "max_lost", "min_margin_ms", "max_idle_ms")
        ),
        (view("g", problems=(PROBLEM,)), {"min_members": 1}),
        (view("g", problems=(PROBLEM,)), {"max_rebalances": 0}),
        (view("g", problems=(PROBLEM,)), {"states": frozenset({GroupState.STABLE})}),
    ],
)
def test_what_is_not_known_is_never_well(group: GroupView, limits: dict[str, object]) -> None:
    [finding] = judge(snapshot(group), GroupLimits(**limits))  # type: ignore[arg-type]
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.why is not None


def test_what_is_known_breaks_a_limit_whatever_is_not() -> None:
    group = view("g", [row("t", 0, 40), LEADERLESS], [Wait(9000), Wait(None)], problems=(PROBLEM,))
    assert found(group, max_lag=10, max_time_lag_ms=10) == [("lag", "broken", 60), ("time_lag", "broken", 9000)]


def test_groups_are_judged_in_order_and_only_by_what_is_limited() -> None:
    findings = judge(snapshot(view("b", [row("t", 0, 1)]), view("a")), GroupLimits(max_lag=5))
    assert [(each.group_id, each.measure) for each in findings] == [("a", Measure.LAG), ("b", Measure.LAG)]
    assert list(judge(snapshot(view("b")), GroupLimits())) == []
    assert not GroupLimits()
    assert GroupLimits(max_lag=0)
