"""Deadlines of the coordinator's timers, on the event loop."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable

from groupkeeper.coordinator.kernel.timers import TimerKey

_RETRY_MS = 500


class TimerTable:
    """One deadline per timer key. The event loop is the clock.

    Every heartbeat postpones a deadline, which is one dictionary write: the alarm that is already set finds the later
    deadline when it fires, and is set again. If the expiry of a timer raises, the timer expires again a little later.
    """

    def __init__(self, loop: AbstractEventLoop, on_expired: Callable[[TimerKey], None]) -> None:
        self._loop = loop
        self._on_expired = on_expired
        self._deadline_by_timer: dict[TimerKey, float] = {}
        self._alarm_by_timer: dict[TimerKey, TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._deadline_by_timer)

    def arm(self, timer: TimerKey, after_ms: int, keeps_earlier: bool = False) -> None:
        """Sets a timer's deadline; with `keeps_earlier`, only if it has none."""
        before = self._deadline_by_timer.get(timer)
        if keeps_earlier and before is not None:
            return
        at = self._loop.time() + after_ms / 1000
        self._deadline_by_timer[timer] = at
        if before is not None and before <= at:
            return  # its alarm rings before
        alarm = self._alarm_by_timer.get(timer)
        if alarm is None or alarm.when() > at:
            if alarm is not None:
                alarm.cancel()
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
        for alarm in self._alarm_by_timer.values():
            alarm.cancel()
        self._alarm_by_timer.clear()
        self._deadline_by_timer.clear()

    def _set_alarm(self, timer: TimerKey, at: float) -> None:
        self._alarm_by_timer[timer] = self._loop.call_at(at, self._ring, timer)

    def _ring(self, timer: TimerKey) -> None:
        del self._alarm_by_timer[timer]
        deadline = self._deadline_by_timer.get(timer)
        if deadline is None:
            return
        if deadline > self._loop.time():
            self._set_alarm(timer, deadline)
            return
        del self._deadline_by_timer[timer]
        self._expire(timer)

    def _expire(self, timer: TimerKey) -> None:
        try:
            self._on_expired(timer)
        except Exception:
            self.arm(timer, _RETRY_MS, keeps_earlier=True)  # as Kafka's coordinators do
            raise
