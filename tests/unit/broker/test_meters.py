"""Rates and times over windows of 30 seconds, without waiting for them."""

from pathlib import Path

import pytest

from groupkeeper import coordinator
from groupkeeper.broker.meters import Rate, Timing
from groupkeeper.coordinator.kernel.result import Meter

S = 1_000_000_000
MS = 1_000_000


def test_coordinators_count_with_every_meter() -> None:
    text = "".join(path.read_text() for path in Path(coordinator.__file__).parent.rglob("*.py"))
    assert [meter for meter in Meter if f"Meter.{meter.name}" not in text] == []


def test_a_rate_counts_two_windows() -> None:  # K496-60
    rate = Rate(0)
    assert rate.per_second(0) == 0
    rate.record(60, 1 * S)
    assert rate.per_second(10 * S) == pytest.approx(60 / 40)
    rate.record(30, 31 * S)
    assert rate.per_second(40 * S) == pytest.approx(90 / 40)
    assert rate.per_second(61 * S) == pytest.approx(30 / 31)
    assert rate.per_second(95 * S) == 0
    assert rate.total == 90
    rate.record(7, 1000 * S)
    assert rate.per_second(1000 * S) == pytest.approx(7 / (30 + 10))


def test_times_have_percentiles() -> None:
    timing = Timing(0)
    times = timing.read(0)
    assert (times.maximum_ms, times.average_ms, times.percentile_ms(0.5)) == (0, 0, 0)
    for number in range(1, 101):
        timing.record(S - number * MS, S)
    times = timing.read(2 * S)
    assert times.maximum_ms == pytest.approx(100, rel=0.002)
    assert times.average_ms == pytest.approx(50.5, rel=0.002)
    assert [times.percentile_ms(share) for share in (0.5, 0.95, 0.99)] == pytest.approx([50, 95, 99], rel=0.002)
    timing.record(31 * S - 5 * MS, 31 * S)
    assert timing.read(59 * S).maximum_ms == pytest.approx(100, rel=0.002)
    assert timing.read(61 * S).maximum_ms == pytest.approx(5, rel=0.002)
    assert timing.read(300 * S).maximum_ms == 0


def test_times_are_counted_and_summed_over_two_windows() -> None:
    timing = Timing(0)
    for _ in range(60):
        timing.record(S - 100 * MS, S)
    assert timing.per_second(10 * S) == pytest.approx(60 / 40)
    assert timing.share(10 * S) == pytest.approx(6 / 40)
    timing.record(28 * S, 31 * S)
    assert timing.per_second(40 * S) == pytest.approx(61 / 40)
    assert timing.share(40 * S) == pytest.approx(9 / 40)
    assert timing.share(61 * S) == pytest.approx(3 / 31)
    assert (timing.per_second(95 * S), timing.share(95 * S)) == (0, 0)


def test_times_take_little_memory() -> None:
    timing = Timing(0)
    for number in range(200_000):
        timing.record(-number * 100_000, 0)
    assert len(timing._now) < 10_000
