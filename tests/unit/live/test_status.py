"""How a group is doing, by how long records wait."""

from __future__ import annotations

import pytest
from tests.unit.live.views import described, member, row, view

from groupkeeper.live.model import NOTHING_WAITS, GroupView, Stuck, Wait
from groupkeeper.live.status import Status, judge_status
from groupkeeper.operations.problems import Problem
from groupkeeper.protocol.errors import LeaderNotAvailable

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
LEADERLESS = row("t", 1, 5, None)._replace(failure=LeaderNotAvailable())


def group(wait: Wait, still_min: int = 0, members: int = 1, committed: int = 40, start: int = 0) -> GroupView:
    description = described("g", *(member(str(number)) for number in range(members)))
    rows = [row("t", 0, committed, start=start)]
    return view("g", rows, [wait], description, progress_ms=NOW_MS - still_min * MINUTE_MS)


def stuck(waits_min: int, still_min: int) -> GroupView:
    waits_ms = waits_min * MINUTE_MS
    return group(Wait(waits_ms))._replace(stuck=Stuck(waits_ms, NOW_MS - still_min * MINUTE_MS))


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (group(NOTHING_WAITS, committed=100, still_min=999), Status.OK),  # nothing to do
        (group(Wait(4 * MINUTE_MS)), Status.OK),
        (group(Wait(5 * MINUTE_MS)), Status.LAGGING),
        (group(Wait(99 * MINUTE_MS), still_min=9), Status.LAGGING),
        (group(Wait(99 * MINUTE_MS), still_min=10), Status.STOPPED),
        (group(Wait(2 * MINUTE_MS), still_min=999), Status.OK),  # the record came late
        (group(Wait(2 * MINUTE_MS), still_min=1, members=0), Status.STOPPED),
        (group(Wait(MINUTE_MS // 2), still_min=9, members=0), Status.OK),
        (group(NOTHING_WAITS, still_min=99), Status.OK),  # what is left are markers, or was aborted
        (stuck(99, 10), Status.STOPPED),  # of one partition, though the group has got on just now
        (stuck(99, 9), Status.LAGGING),
        (stuck(9, 99), Status.LAGGING),
        (group(Wait(MINUTE_MS), start=50), Status.LOSING),
        (group(Wait(MINUTE_MS, False, -1)), Status.LOSING),
        (group(Wait(99 * MINUTE_MS), still_min=1440, members=0, start=50), Status.STOPPED),  # it has been left
        (group(Wait(None)), Status.UNKNOWN),
        (view("g", [row("t", 0, 100), LEADERLESS], [NOTHING_WAITS, Wait(None)]), Status.UNKNOWN),
        (view("g", problems=(Problem("X", "why", "g"),)), Status.UNKNOWN),
        (view("g"), Status.OK),
        (view("g", [row("t", 0, 100), row("t", 1, None)]), Status.UNKNOWN),  # who knows what it reads there
        (view("g", [row("t", 0, 100), row("t", 1, None, None)]), Status.UNKNOWN),
        (view("g", [row("t", 0, 100), row("t", 1, None, 100, start=100)]), Status.OK),  # there is nothing to read
        (view("g", [row("t", 0, 101)]), Status.UNKNOWN),  # past the end of the log
        (view("g", [row("t", 0, 40, start=50), row("t", 1, None)], [Wait(1), Wait(None)]), Status.LOSING),
    ],
)
def test_a_status(of: GroupView, expected: Status) -> None:
    assert judge_status(of, NOW_MS).status is expected
