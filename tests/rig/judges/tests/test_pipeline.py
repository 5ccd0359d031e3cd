"""Which commit of the facts a row of the table is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.rig.facts import DONE, Committed, Cut, Produced, TransactionEnded
from tests.rig.judges.pipeline import _age, _sequence
from tests.rig.truth import Log, Truth

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


def _produced(offset: int, time_s: int) -> Produced:
    return Produced("c", "t", 0, offset, time_s * 1000, 1, "p", offset, None, False, None, 0, 1)


@pytest.mark.parametrize(
    ("committed", "lag_ms", "basis", "is_right"),
    [
        (3, 30_000, "exact", True),  # it may have been read before the log was cut
        (3, 10_000, "exact", True),
        (3, 0, "exact", True),  # or when nothing was left
        (3, 30_500, "exact", False),
        (3, 40_000, "exact", False),  # the record before it
        (3, 5_000, "interpolated", True),  # it may be lost
        (6, 0, "exact", True),
        (6, 30_000, "exact", False),
        (1, 40_000, "exact", True),  # the log began at 2 at least
        (1, 50_000, "exact", False),
    ],
)
def test_a_log_may_be_cut_while_its_records_are_read(committed: int, lag_ms: int, basis: str, is_right: bool) -> None:
    log = Log()
    for offset in range(6):
        log.add(_produced(offset, 40 + 10 * offset))
    log.cuts += [Cut("c", "t", 0, 2, 1, 2), Cut("c", "t", 0, 6, 100 * SECOND_NS, 101 * SECOND_NS)]
    row = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0, "committed_offset": committed,
           "lag_ms": lag_ms, "lag_basis": basis, "measured_time": EPOCH + timedelta(seconds=100),
           "committed_lag_ms": lag_ms, "last_stable_offset": 6, "log_end_offset": 6}  # fmt: skip
    texts = list(_age(Truth(logs={("c", "t", 0): log}), row, answered=105 * SECOND_NS))
    assert (not texts) == is_right, texts


@pytest.mark.parametrize(
    ("committed_lag_ms", "stable", "is_right"), [(20_000, 6, True), (40_000, 6, False), (0, 6, False), (0, 5, True)]
)
def test_aborted_records_do_not_wait(committed_lag_ms: int, stable: int, is_right: bool) -> None:
    log = Log()
    for offset in range(6):
        log.add(_produced(offset, 40 + 10 * offset)._replace(transaction="x" if offset in (2, 3) else None))
    ended = TransactionEnded("c", "x", False, [("t", 0)], 1, 2)
    truth = Truth(logs={("c", "t", 0): log}, transactions={("c", "x"): ended})
    row = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0, "committed_offset": 2, "lag_ms": 40_000,
           "lag_basis": "exact", "measured_time": EPOCH + timedelta(seconds=100), "committed_lag_ms": committed_lag_ms,
           "last_stable_offset": stable, "log_end_offset": 6}  # fmt: skip
    texts = list(_age(truth, row, answered=105 * SECOND_NS))
    assert (not texts) == is_right, texts
