"""Which commit of the facts a row of the table is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.rig.facts import DONE, Committed
from tests.rig.judges.pipeline import _sequence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND_NS = 1_000_000_000


def _commit(offset: int, began_s: float, ended_s: float, outcome: str = DONE) -> Committed:
    times = int(began_s * SECOND_NS), int(ended_s * SECOND_NS)
    return Committed("c", "g", "t", 0, offset, -1, "", outcome, "a", *times)


def _row(offset: int, at_s: float) -> dict[str, Any]:
    return {"committed_offset": offset, "commit_time": EPOCH + timedelta(seconds=at_s), "log_time": None}


@pytest.mark.parametrize(
    ("commits", "rows", "wrong"),
    [
        ([_commit(1, 1, 2), _commit(2, 3, 4)], [_row(1, 1.5), _row(2, 3.5)], ""),
        # A commit whose outcome is unknown and lasts over an acknowledged one of the same offset takes not its row.
        ([_commit(1, 1, 9, "failed"), _commit(1, 5, 6)], [_row(1, 5.5)], ""),
        ([_commit(1, 1, 9, "failed"), _commit(1, 5, 6)], [_row(1, 2.0), _row(1, 5.5)], ""),
        ([_commit(1, 1, 9, "failed"), _commit(1, 5, 6)], [_row(1, 5.2), _row(1, 5.5)], ""),
        ([_commit(1, 1, 9, "failed"), _commit(1, 5, 6)], [_row(1, 2.0)], "is not there"),
        ([_commit(1, 1, 9, "failed"), _commit(2, 5, 6)], [_row(2, 5.5), _row(1, 8.0)], ""),
        ([_commit(1, 1, 2), _commit(2, 3, 4)], [_row(1, 1.5)], "is not there"),
        ([_commit(1, 1, 1.2)], [_row(1, 1.1), _row(1, 1.15)], "truth none"),
        ([_commit(1, 1, 1.2)], [_row(1, 1.1), _row(2, 1.15)], "truth none"),
        ([_commit(1, 1, 1.2)], [_row(1, 2.1)], "is not there"),
    ],
)
def test_rows_are_matched_with_commits(commits: list[Committed], rows: list[dict[str, Any]], wrong: str) -> None:
    found = _sequence(commits, rows)
    assert wrong in found
    assert bool(found) == bool(wrong)
