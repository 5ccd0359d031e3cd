"""Where lag goes between two looks."""

import time
from argparse import Namespace

import pytest

from groupkeeper.cli.groups.describe import _lag_rows
from groupkeeper.cli.groups.trends import NO_TREND, FirstMeasurement
from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.operations.lag import LagStatus, PartitionLag


def row(partition: int, committed: int | None, end: int | None) -> PartitionLag:
    commit = None if committed is None else OffsetAndMetadata(committed)
    lag = None if committed is None or end is None else end - committed
    return PartitionLag("g", "t", partition, commit, 0, end, None, lag, 0, LagStatus.OK, None, None)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> FirstMeasurement:
    """Ten seconds ago 100 of 200 offsets were read of partition 0, and 300 of 300 of partition 1."""
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    look = FirstMeasurement()
    look.see([row(0, 100, 200), row(1, 300, 300), row(2, None, 5)])
    monkeypatch.setattr(time, "monotonic", lambda: 1010.0)
    return look


@pytest.mark.parametrize(
    ("committed", "end", "trend"),
    [
        (200, 1200, (100, 10, "growing", None)),
        (150, 200, (0, 5, "shrinking", 10_000)),
        (200, 300, (10, 10, "steady", None)),
        (400, 400, (20, 30, "steady", 0)),
        (100, 200, (0, 0, "steady", None)),  # nobody reads
        (0, 200, (0, -10, "growing", None)),  # it was reset
    ],
)
def test_of_a_partition(look: FirstMeasurement, committed: int, end: int, trend: tuple[object, ...]) -> None:
    assert tuple(look.trend_of([row(0, committed, end)]).values()) == trend


def test_of_partitions_together(look: FirstMeasurement) -> None:
    told = look.trend_of([row(0, 200, 300), row(1, 300, 400), row(2, None, 9)])
    assert tuple(told.values()) == (20, 10, "growing", None)


def test_where_it_is_not_known(look: FirstMeasurement) -> None:
    assert look.trend_of([row(2, 5, 9), row(3, 5, 9), row(0, None, 9), row(1, 5, None)]) == NO_TREND


def test_of_a_topic(monkeypatch: pytest.MonkeyPatch, look: FirstMeasurement) -> None:
    other = row(0, 100, 200)._replace(topic="u")
    options = Namespace(status=None, sum="topic", min_lag=None)
    told = [
        (each["topic"], each["produced_per_s"]) for each in _lag_rows([row(0, 200, 300), other], "g", options, look)
    ]
    assert told == [("t", 10), ("u", None)]
