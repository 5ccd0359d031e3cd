"""Deadlines and pauses of client calls. Seconds are the event loop's."""

from __future__ import annotations

import asyncio

from groupkeeper.client.errors import CallTimedOut


class Deadline:
    """The time by which a call must end. `name`: the call's, for the text of the timeout."""

    __slots__ = ("_loop", "at", "name", "started", "timeout_ms")

    def __init__(self, name: str, timeout_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.name = name
        self.timeout_ms = timeout_ms
        self.started = self._loop.time()
        self.at = self.started + timeout_ms / 1000

    def left_s(self) -> float:
        """Seconds left, 0 when the deadline has passed."""
        return max(0.0, self.at - self._loop.time())

    def left_ms(self) -> int:
        """Milliseconds left, at least 1, as requests have no timeout of 0."""
        return max(1, int(self.left_s() * 1000))

    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return self._loop.time() - self.started

    @property
    def has_passed(self) -> bool:
        return self._loop.time() >= self.at

    def timed_out(self, last: BaseException | None) -> CallTimedOut:
        """The error for a call that ran out of time; `last`: the failure that was retried last, None if none was."""
        while isinstance(last, CallTimedOut) and last.__cause__ is not None:
            last = last.__cause__
        reason = "no reply" if last is None else f"last: {last or type(last).__name__}"
        error = CallTimedOut(f"{self.name} timed out after {self.timeout_ms} ms ({reason})")
        error.__cause__ = last
        return error


class Backoff:
    """Pauses between attempts: doubling, ±20 % at random, so that clients don't retry in step."""

    __slots__ = ("_max_ms", "_next_ms")

    def __init__(self, first_ms: float, max_ms: float) -> None:
        self._next_ms = first_ms
        self._max_ms = max_ms

    def copy(self) -> Backoff:
        """An independent copy, whose next pause is the same."""
        return Backoff(self._next_ms, self._max_ms)

    async def pause(self, deadline: Deadline, last: BaseException | None = None) -> None:
        """Wait before the next attempt; raises CallTimedOut when the deadline comes first."""
        from random import uniform  # here: importing it costs as much as listing a few groups

        wait_s = self._next_ms / 1000 * uniform(0.8, 1.2)
        self._next_ms = min(self._max_ms, self._next_ms * 2)
        left_s = deadline.left_s()
        await asyncio.sleep(min(left_s, wait_s))
        if left_s <= wait_s or deadline.has_passed:  # the loop was busy: another attempt would only hide `last`
            raise deadline.timed_out(last)
