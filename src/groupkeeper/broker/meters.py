"""The broker's measurements: rates and times over the last minute, defined like Kafka's metrics.

Nothing here reads a clock: times are parameters, `perf_counter_ns` of the caller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import Enum
from time import perf_counter_ns
from typing import Final

from groupkeeper.coordinator.kernel.result import Meter

_WINDOW_NS: Final = 30_000_000_000
"""Kafka's metrics.sample.window.ms. As by its metrics.num.samples, two windows count: the last and the current one."""
_EXACT_BITS: Final = 10
_LARGEST_EXACT: Final = (1 << _EXACT_BITS) - 1
PERCENTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))


class Rate:
    """Events per second over the last one or two windows, and their total since the start.

    Attributes:
        total: events since the start.
    """

    __slots__ = ("_before", "_now", "_started_ns", "total")

    def __init__(self, started_ns: int) -> None:
        self.total = 0
        self._started_ns = started_ns
        self._before = 0
        self._now = 0

    def record(self, count: int, now_ns: int) -> None:
        if now_ns - self._started_ns >= _WINDOW_NS:
            self._turn(now_ns)
        self.total += count
        self._now += count

    def per_second(self, now_ns: int) -> float:
        """As Kafka's Rate: time before the first window counts as a window without events."""
        self._turn(now_ns)
        return (self._before + self._now) * 1e9 / (_WINDOW_NS + now_ns - self._started_ns)

    def _turn(self, now_ns: int) -> None:
        windows = (now_ns - self._started_ns) // _WINDOW_NS
        if not windows:
            return
        self._before = self._now if windows == 1 else 0
        self._now = 0
        self._started_ns += windows * _WINDOW_NS


class Timing:
    """Durations and number of operations over the last one or two windows.

    Durations are kept with three significant digits, so memory doesn't grow with their number.
    """

    __slots__ = ("_before", "_now", "_spent_before_ns", "_spent_ns", "_started_ns")

    def __init__(self, started_ns: int) -> None:
        self._started_ns = started_ns
        self._before: dict[int, int] = {}
        self._now: defaultdict[int, int] = defaultdict(int)
        self._spent_before_ns = 0
        self._spent_ns = 0

    def record(self, since_ns: int, now_ns: int) -> None:
        """Records the end of an operation that began at `since_ns`."""
        if now_ns - self._started_ns >= _WINDOW_NS:
            self._turn(now_ns)
        duration_ns = now_ns - since_ns
        self._spent_ns += duration_ns
        micros = duration_ns // 1000
        if micros > _LARGEST_EXACT:
            spare = micros.bit_length() - _EXACT_BITS
            micros = micros >> spare << spare
        self._now[micros] += 1

    def read(self, now_ns: int) -> Times:
        """The durations of the last one or two windows."""
        self._turn(now_ns)
        merged = dict(self._before)
        for micros, count in self._now.items():
            merged[micros] = merged.get(micros, 0) + count
        return Times(sorted(merged.items()))

    def per_second(self, now_ns: int) -> float:
        """Operations per second, as in `Rate`."""
        self._turn(now_ns)
        count = sum(self._before.values()) + sum(self._now.values())
        return count * 1e9 / (_WINDOW_NS + now_ns - self._started_ns)

    def share(self, now_ns: int) -> float:
        """The fraction of time that the operations took."""
        self._turn(now_ns)
        return (self._spent_before_ns + self._spent_ns) / (_WINDOW_NS + now_ns - self._started_ns)

    def _turn(self, now_ns: int) -> None:
        windows = (now_ns - self._started_ns) // _WINDOW_NS
        if not windows:
            return
        self._before, self._spent_before_ns = (self._now, self._spent_ns) if windows == 1 else ({}, 0)
        self._now, self._spent_ns = defaultdict(int), 0
        self._started_ns += windows * _WINDOW_NS


class Times:
    """Statistics of durations in milliseconds, 0 without any. `counts`: (microseconds, number), shortest first."""

    def __init__(self, counts: Sequence[tuple[int, int]]) -> None:
        self._counts = counts
        self._number = sum(count for _, count in counts)

    @property
    def maximum_ms(self) -> float:
        return self._counts[-1][0] / 1000 if self._counts else 0.0

    @property
    def average_ms(self) -> float:
        return sum(micros * count for micros, count in self._counts) / 1000 / (self._number or 1)

    def percentile_ms(self, share: float) -> float:
        """The percentile: the shortest duration that the fraction `share` of all durations didn't exceed."""
        passed = 0
        for micros, count in self._counts:
            passed += count
            if passed >= share * self._number:
                return micros / 1000
        return 0.0


class GroupMeters:
    """Measurements of the group coordinators.

    Attributes:
        marks: the coordinator's meters by their sensor.
        processing: operations, from their start to the response or to parking.
        flushing: appends to the log.
        loading: partitions that were read.
    """

    def __init__(self) -> None:
        now_ns = perf_counter_ns()
        self.marks = {meter: Rate(now_ns) for meter in Meter}
        self.processing = Timing(now_ns)
        self.flushing = Timing(now_ns)
        self.loading = Timing(now_ns)


class DeadLetters(Enum):
    """Counters of a share group's dead-letter queue; values are Kafka's names."""

    RECORDS = "DeadLetterQueueRecordCount"
    WRITES = "DeadLetterQueueTotalProduceRequestsPerSec"
    FAILURES = "DeadLetterQueueFailedProduceRequestsPerSec"


class ShareMeters:
    """Measurements of share coordinators, and of leaders of share-partitions.

    Attributes:
        writes: batches of share state.
        writing: the durations of writes.
        last_pruned: by partition of `__share_group_state`, the offset before which its log was cut last.
        dead_letters: counts of dead-letter queues since the start, by group id.
    """

    def __init__(self) -> None:
        now_ns = perf_counter_ns()
        self.writes = Rate(now_ns)
        self.writing = Timing(now_ns)
        self.last_pruned: dict[tuple[str, int], int] = {}
        self.dead_letters: Counter[tuple[DeadLetters, str]] = Counter()

    def wrote(self, since_ns: int, now_ns: int) -> None:
        """Records the end of a write that began at `since_ns`."""
        self.writing.record(since_ns, now_ns)
        self.writes.record(1, now_ns)
