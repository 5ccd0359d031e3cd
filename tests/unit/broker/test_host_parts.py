"""Parts of the host that need no broker: deadlines, and rates."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupkeeper import coordinator
from groupkeeper.broker.coordination.shard_log import map_log_error
from groupkeeper.broker.coordination.timers import TimerTable
from groupkeeper.broker.meters import Rate, Timing
from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.coordinator.kernel.timers import JoinPhase, SyncPhase, TimerKey
from groupkeeper.protocol import errors

A, B = JoinPhase("a"), JoinPhase("b")
S = 1_000_000_000
MS = 1_000_000


def test_log_errors_are_mapped() -> None:  # GW-08
    assert type(map_log_error(errors.NetworkException())) is errors.CoordinatorLoadInProgress
    assert type(map_log_error(errors.RequestTimedOut())) is errors.CoordinatorNotAvailable
    assert type(map_log_error(errors.KafkaStorageError())) is errors.NotCoordinator
    assert type(map_log_error(errors.RecordListTooLarge())) is errors.UnknownServerError
    other = errors.InvalidTopicException()
    assert map_log_error(other) is other


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0

    def time(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Moves the clock and runs what is due."""
        self.now += seconds
        self.call_soon(self.stop)
        self.run_forever()


class Timers:
    """A timer table and what expired in it."""

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.expired: list[TimerKey] = []
        self.on_expired: Callable[[TimerKey], None] = self.expired.append
        self.table = TimerTable(self.loop, lambda timer: self.on_expired(timer))

    def advance(self, seconds: float) -> list[TimerKey]:
        """What expires until then."""
        before = len(self.expired)
        self.loop.advance(seconds)
        return self.expired[before:]


@pytest.fixture
def timers() -> Iterator[Timers]:
    timers = Timers()
    yield timers
    timers.loop.close()


ARMED = {
    "once, in order": "A=2000 B=1000 +0.9: +0.2:B +10:A +10:",
    "at moved deadlines": "A=1000 A=3000 B=3000 B=1000 +1.5:B +1: +1:A +10:",
    "not when disarmed": "A=1000 A- B- +2: A=1000 +2:A",
    "when armed again before the old alarm rings": "A=1000 A- A=5000 +2: +4:A",
    "each type for itself": "A=1000 C=1000 C- +1:A",
    "not when all are cleared": "A=1000 clear +2:",
}
"""`A=1000` arms a timer (ms), `A-` disarms it; `+2:A` is what expires within 2 seconds."""
TIMERS: dict[str, TimerKey] = {"A": A, "B": B, "C": SyncPhase("a")}


@pytest.mark.parametrize("steps", ARMED.values(), ids=ARMED)
def test_timers_expire(timers: Timers, steps: str) -> None:
    for step in steps.split():
        match re.split("([=:-])", step):
            case [name, "=", after_ms]:
                timers.table.arm(TIMERS[name], int(after_ms))
            case [name, "-", _]:
                timers.table.disarm(TIMERS[name])
            case [seconds, ":", expired]:
                assert timers.advance(float(seconds)) == [TIMERS[name] for name in expired], step
            case _:
                timers.table.clear()
    assert len(timers.table) == 0


def test_expiring_may_disarm_and_arm(timers: Timers) -> None:
    def expire(timer: TimerKey) -> None:
        timers.expired.append(timer)
        timers.table.disarm(B)
        if len(timers.expired) == 1:
            timers.table.arm(A, 1_000)

    timers.on_expired = expire
    timers.table.arm(A, 1_000)
    timers.table.arm(B, 1_000)
    assert timers.advance(1) == [A]
    assert timers.advance(1) == [A]


def test_one_that_fails_costs_no_other_and_comes_again(timers: Timers) -> None:
    def expire(timer: TimerKey) -> None:
        timers.expired.append(timer)
        if timer == A and timers.expired.count(A) < 3:
            raise ValueError("a bug")

    timers.on_expired = expire
    failures: list[object] = []
    timers.loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    timers.table.arm(A, 1_000)
    timers.table.arm(B, 1_000)
    timers.table.arm(SyncPhase("c"), 2_000)
    timers.advance(1)
    timers.advance(0)
    assert timers.expired == [A, B]
    assert [str(failure) for failure in failures] == ["a bug"]
    assert timers.advance(0.5) == [A]
    timers.advance(0)
    assert timers.advance(0.5) == [SyncPhase("c"), A]
    assert len(failures) == 2
    assert timers.advance(10) == []


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
