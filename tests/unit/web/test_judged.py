"""Groups are judged once for all pages, until the next poll."""

from tests.unit.live.views import row, snapshot, view
from tests.unit.web.test_pages import NOW_MS

from groupkeeper.live.model import Wait
from groupkeeper.web.pages.judged import KeptRows, rows_of


def test_rows_are_kept_until_they_are_forgotten() -> None:
    late = view("late", [row("t", 0, 40)], [Wait(11 * 60_000)], progress_ms=NOW_MS - 59_000)
    found = snapshot(view("z", [row("t", 0, 100)]), late, at_ms=NOW_MS)
    kept = KeptRows()
    first = kept.rows_of(found)
    assert [(each.group.group_id, each.judged.status) for each in first] == [("late", "lagging"), ("z", "ok")]
    assert first == rows_of(found)
    assert kept.rows_of(found) is first
    kept.forget("dr")
    assert kept.rows_of(found) is first
    kept.forget(found.cluster)
    assert kept.rows_of(found) is not first


def test_who_may_see_other_groups_gets_those() -> None:
    """However often parts of a snapshot are made for viewers, and removed."""
    found = snapshot(*(view(name, [row("t", 0, 100)]) for name in "abc"))
    kept = KeptRows()
    for name in "abc" * 20:
        some = found._replace(groups={name: found.groups[name]})
        assert [each.group.group_id for each in kept.rows_of(some)] == [name]
