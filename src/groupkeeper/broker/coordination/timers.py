"""Deadlines of the coordinator's timers, on the event loop."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from groupkeeper.coordinator.kernel.timers import TimerKey

_RETRY_MS = 500


class _Alarm(NamedTuple):
    at: float
    number: int
    timer: TimerKey


class TimerTable:
    """One deadline per timer key. The event loop is the clock.

    Every heartbeat postpones a deadline, which is one dictionary write: the alarm that is already set finds the later
    deadline when it fires, and is set again. If the expiry of a timer raises, the timer expires again a little later.
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

    def arm(self, timer: TimerKey, after_ms: int, keeps_earlier: bool = False) -> None:
        """Sets a timer's deadline; with `keeps_earlier`, only if it has none."""
        if keeps_earlier and timer in self._deadline_by_timer:
            return
        at = self._loop.time() + after_ms / 1000
        self._deadline_by_timer[timer] = at
        alarm = self._alarm_by_timer.get(timer)
        if alarm is None or at < alarm:
            self._set_alarm(timer, at)

    def disarm(self, timer: TimerKey) -> None:
        """Removes a deadline if there is one."""
        self._deadline_by_timer.pop(timer, None)

    def expire(self, timer: TimerKey) -> None:
        """Makes a timer expire at once if it has a deadline."""
        if self._deadline_by_timer.pop(timer, None) is not None:
            self._expire(timer)

    def clear(self) -> None:
        """Removes all deadlines."""
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
        try:
            # One after the other: an expiry may move or remove a later timer, and a failure must not affect other
            # timers.
            while self._alarms and self._alarms[0].at <= now:
                timer = self._take(heappop(self._alarms), now)
                if timer is not None:
                    self._expire(timer)
        finally:
            self._schedule()

    def _expire(self, timer: TimerKey) -> None:
        try:
            self._on_expired(timer)
        except Exception:
            self.arm(timer, _RETRY_MS, keeps_earlier=True)  # as Kafka's coordinators do
            raise

    def _take(self, alarm: _Alarm, now: float) -> TimerKey | None:
        """The timer of an alarm if its deadline has passed; a postponed timer gets a new alarm."""
        timer = alarm.timer
        if self._alarm_by_timer.get(timer) != alarm.at:
            return None
        del self._alarm_by_timer[timer]
        deadline = self._deadline_by_timer.get(timer)
        if deadline is None:
            return None
        if deadline > now:
            self._set_alarm(timer, deadline)
            return None
        del self._deadline_by_timer[timer]
        return timer
