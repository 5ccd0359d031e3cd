"""Limits that groups are to keep: broken by what is known, and unknown where the answer hangs on what isn't."""

import pytest
from tests.unit.live.views import row, snapshot, view

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.limits import GroupLimits, judge
from groupkeeper.live.model import GroupView, Wait
from groupkeeper.operations.problems import Problem
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.rules.limits import Verdict

NOW_MS = 1_700_000_000_000
LEADERLESS = row("t", 9, 5, None)._replace(failure=LeaderNotAvailable())
PROBLEM = Problem("LEADER_NOT_AVAILABLE", "no leader", "g", "t", 9)


def found(group: GroupView, **limits: object) -> list[tuple[str, str, object]]:
    findings = judge(snapshot(group, at_ms=NOW_MS), GroupLimits(**limits))  # type: ignore[arg-type]
    return [(finding.measure.value, finding.verdict.value, finding.value) for finding in findings]


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
