"""Groups are judged once for all pages, until the next poll or for a moment."""

from __future__ import annotations

from tests.unit.live.views import row, snapshot, view
from tests.unit.web.test_pages import NOW_MS

from groupkeeper.live.model import Wait
from groupkeeper.rules.status import Status
from groupkeeper.web.pages.judged import KeptRows, rows_of


def test_rows_are_kept_until_they_are_forgotten_or_old() -> None:
    late = view("late", [row("t", 0, 40)], [Wait(11 * 60_000)], progress_ms=NOW_MS - 59_000)
    found = snapshot(view("z", [row("t", 0, 100)]), late, at_ms=NOW_MS)
    kept = KeptRows()
    first = kept.rows_of(found, NOW_MS)
    assert [each.group.group_id for each in first] == ["late", "z"]
    assert first == rows_of(found, NOW_MS)
    assert kept.rows_of(found, NOW_MS + 10_000) is first
    aged = kept.rows_of(found, NOW_MS + 16_000)
    assert [each[0].judged.status for each in (first, aged)] == [Status.LAGGING, Status.STOPPED]
    assert kept.rows_of(found, NOW_MS + 17_000) is aged
    some = found._replace(groups={"late": late})  # of one with some rights
    assert [each.group for each in kept.rows_of(some, NOW_MS)] == [late]
    kept.forget("dr")
    assert kept.rows_of(found, NOW_MS + 17_000) is aged
    kept.forget(found.cluster)
    assert kept.rows_of(found, NOW_MS + 17_000) is not aged
