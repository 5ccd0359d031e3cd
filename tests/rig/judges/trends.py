"""By how much the lag of groups changes, as pages say it: from poll to poll, newer ones counting more.

Facts give bounds of a group's lag at the instant of each poll. From these follow bounds of each change, and of the
trend: there is no other tolerance, and while all rests they meet.
"""

import re
import threading
from itertools import pairwise
from typing import NamedTuple

from tests.rig.asking import Desk
from tests.rig.judges import exporter
from tests.rig.truth import Key, Truth

NEWEST = 0.3
"""The weight of the last change, as docs/serve.md has it."""
MOST_PARTITIONS = 40
"""Groups of more are left out, as each poll is looked at."""
SPARE = 0.01
ANSWER_NS = 1_500_000_000
"""The ends of logs are asked for at the instant that is stated, and the answers took so long at most."""
_LINES = re.compile(
    r'^groupkeeper_collector_(polls_total|succeeded_timestamp_seconds|measured_timestamp_seconds)'
    r'\{cluster="([^"]+)"\} (\S+)$', re.MULTILINE)  # fmt: skip


class Poll(NamedTuple):
    """`number`: of all of its cluster. When it began, and the instant of its counts, in ns."""

    number: int
    began: int
    measured: int


class Range(NamedTuple):
    """Of a number that need not be whole."""

    low: float
    high: float

    def has(self, value: float) -> bool:
        return self.low - SPARE <= value <= self.high + SPARE

    @property
    def sort(self) -> str:
        """What is sure of the lag."""
        if self.low > SPARE:
            return "surely growing"
        if self.high < -SPARE:
            return "surely shrinking"
        return "surely the same" if self.high - self.low <= 2 * SPARE else "not sure"


class Watch(threading.Thread):
    """Notes when the clusters were polled."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(daemon=True, name="polls")
        self.polls: dict[str, list[Poll]] = {}
        self._desk = desk
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        while not self._is_over.wait(1.0):
            try:
                text = exporter.get(self._desk, "/metrics")
            except OSError:  # it is being stopped, or is busy
                continue
            self.take(text)

    def take(self, text: str) -> None:
        """One answer of the exporter."""
        found: dict[str, dict[str, float]] = {}
        for name, cluster, value in _LINES.findall(text):
            found.setdefault(cluster, {})[name] = float(value)
        with self._lock:
            for cluster, values in found.items():
                polls = self.polls.setdefault(cluster, [])
                if len(values) == 3 and (not polls or polls[-1].number < values["polls_total"]):
                    began, measured = (round(values[f"{name}_timestamp_seconds"] * 1000) * 1_000_000
                                       for name in ("succeeded", "measured"))  # fmt: skip
                    polls.append(Poll(int(values["polls_total"]), began, measured))

    def up_to(self, cluster: str, measured: int) -> list[Poll]:
        """The polls of a cluster until one at that instant."""
        with self._lock:
            return [poll for poll in self.polls.get(cluster, []) if poll.measured <= measured]

    def end(self) -> None:
        self._is_over.set()
        self.join(60)


class Lag(NamedTuple):
    """Bounds of the lag of a partition with a commit. `is_sure`: it surely has one; a change counts only if both polls
    have one.
    """

    low: int
    high: int
    is_sure: bool


Lags = dict[Key, Lag]
"""Of the partitions of a group that have a commit, or perhaps have one."""


class Trends:
    """What must be so; bounds of lags are kept, as each question comes back to the same polls."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._lags: dict[tuple[str, str, int], Lags] = {}

    def of(self, cluster: str, group: str, polls: list[Poll]) -> Range | None:
        """Bounds of a group's trend at the last of these polls; None: not known."""
        truth, keys = self._truth, self._truth.by_group.get((cluster, group), set())
        if not keys or len(keys) > MOST_PARTITIONS or any(key[:2] == (cluster, group) for key in truth.shared):
            return None
        if any((cluster, key[2]) in truth.changed or (cluster, key[2]) in truth.removed for key in keys):
            return None
        if polls[0].number != 1 or any(later.number != poll.number + 1 for poll, later in pairwise(polls)):
            return None  # one was not seen, and what changed until it counts in all trends after it
        trend: Range | None = None
        widest = Range(0.0, 0.0)
        is_known = True
        for poll, later in pairwise(polls):
            before, after = self._lag(cluster, group, keys, poll), self._lag(cluster, group, keys, later)
            if not after:
                trend, is_known = None, True  # there was no such group: it begins anew
                continue
            # Whether the group was there decides whether a change from there counts.
            is_known = is_known and all(
                not lags or any(one.is_sure for one in lags.values()) for lags in (before, after)
            )
            if not before or later.measured <= poll.measured or not is_known:
                trend = None
                continue
            seconds = (later.measured - poll.measured) / 1e9
            change = _change(before, after)
            rate = Range(change.low / seconds, change.high / seconds)
            widest = Range(min(widest.low, rate.low), max(widest.high, rate.high))
            # What came before, where there was something, is one of the changes or between them.
            past = widest if trend is None else trend
            trend = Range(NEWEST * rate.low + (1 - NEWEST) * past.low, NEWEST * rate.high + (1 - NEWEST) * past.high)
        return trend if is_known else None

    def _lag(self, cluster: str, group: str, keys: set[Key], poll: Poll) -> Lags:
        name = (cluster, group, poll.number)
        if name not in self._lags:
            self._lags[name] = self._bounds(keys, poll)
        return self._lags[name]

    def _bounds(self, keys: set[Key], poll: Poll) -> Lags:
        found: Lags = {}
        for key in keys:
            end = self._truth.logs[key[0], key[2], key[3]].end(poll.measured, poll.measured + ANSWER_NS)
            commits = self._truth.committed(key, poll.began, poll.measured)
            offsets = [one.offset for one in commits if one is not None]
            if offsets:
                low, high = max(0, end.low - max(offsets)), max(0, end.high - min(offsets))
                found[key] = Lag(low, high, None not in commits)
        return found


def _change(before: Lags, after: Lags) -> Range:
    low = high = 0
    for key in before.keys() & after.keys():
        was, now = before[key], after[key]
        least, most = now.low - was.high, now.high - was.low
        if not (was.is_sure and now.is_sure):
            least, most = min(0, least), max(0, most)
        low, high = low + least, high + most
    return Range(low, high)
