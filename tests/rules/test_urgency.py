"""Which groups are shown first: those of which something can still be saved."""

import pytest

from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import SOON_MS, Urgency, urgency


@pytest.mark.parametrize(
    ("status", "members", "margin_ms", "is_old", "expected"),
    [
        (Status.STOPPED, 0, SOON_MS - 1, True, Urgency.EXPIRING),
        (Status.STOPPED, 0, 1 - SOON_MS, True, Urgency.EXPIRING),
        (Status.STOPPED, 0, -SOON_MS, True, Urgency.LEFT),  # it has been overdue for long
        (Status.LAGGING, 3, -SOON_MS, False, Urgency.EXPIRING),
        (Status.STOPPED, 3, SOON_MS, False, Urgency.STANDING),
        (Status.STALLED, 3, None, True, Urgency.STANDING),
        (Status.LOSING, 3, None, False, Urgency.STANDING),
        (Status.LAGGING, 3, None, False, Urgency.BEHIND),
        (Status.UNSTABLE, 3, None, False, Urgency.STORM),
        (Status.STOPPED, 0, None, False, Urgency.REST),  # its members have just gone
        (Status.STOPPED, None, None, True, Urgency.REST),
        (Status.LOSING, 0, None, True, Urgency.LEFT),
        (Status.ABANDONED, 0, 1, False, Urgency.LEFT),
        (Status.OK, 3, 1, False, Urgency.NONE),
        (Status.UNKNOWN, 0, None, True, Urgency.NONE),
    ],
)
def test_the_order(status: Status, members: int | None, margin_ms: int | None, is_old: bool, expected: Urgency) -> None:
    assert urgency(status, members, margin_ms, is_old=is_old) is expected
