"""Deadlines of the coordinator's timers, on the event loop."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable

    from groupkeeper.coordinator.timers import TimerKey


class _Alarm(NamedTuple):
    at: float
    number: int
    timer: TimerKey


class TimerTable:
    """One deadline per timer key. The event loop is the clock.

    Moving a deadline further away, which every heartbeat does, is one dictionary write: the alarm that is already set
    finds the later deadline when it rings, and is set again.
    """

    def __init__(self, loop: AbstractEventLoop, on_expired: Callable[[TimerKey], None]) -> None:
        self._loop = loop
        self._on_expired = on_expired
        self._deadline_by_timer: dict[TimerKey, float] = {}
        self._alarm_by_timer: dict[TimerKey, float] = {}
        self._alarms: list[_Alarm] = []
        self._number = 0
        self._handle: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadline_by_timer)

    def arm(self, timer: TimerKey, after_ms: int) -> None:
        """Sets or moves a deadline."""
        at = self._loop.time() + after_ms / 1000
        self._deadline_by_timer[timer] = at
        alarm = self._alarm_by_timer.get(timer)
        if alarm is None or at < alarm:
            self._set_alarm(timer, at)

    def disarm(self, timer: TimerKey) -> None:
        """Forgets a deadline if there is one."""
        self._deadline_by_timer.pop(timer, None)

    def clear(self) -> None:
        """Forgets everything."""
        self._deadline_by_timer.clear()
        self._alarm_by_timer.clear()
        self._alarms.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set_alarm(self, timer: TimerKey, at: float) -> None:
        self._alarm_by_timer[timer] = at
        self._number += 1
        heappush(self._alarms, _Alarm(at, self._number, timer))
        if self._alarms[0].number == self._number:
            self._schedule()

    def _schedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(self._alarms[0].at, self._ring) if self._alarms else None

    def _ring(self) -> None:
        self._handle = None
        now = self._loop.time()
        due = []
        while self._alarms and self._alarms[0].at <= now:
            alarm = heappop(self._alarms)
            if self._alarm_by_timer.get(alarm.timer) != alarm.at:
                continue
            del self._alarm_by_timer[alarm.timer]
            deadline = self._deadline_by_timer.get(alarm.timer)
            if deadline is None:
                continue
            if deadline > now:
                self._set_alarm(alarm.timer, deadline)
            else:
                due.append((alarm.timer, deadline))
        self._schedule()
        for timer, deadline in due:
            # What an earlier one of this round did may have moved or removed a later one.
            if self._deadline_by_timer.get(timer) == deadline:
                del self._deadline_by_timer[timer]
                self._on_expired(timer)
