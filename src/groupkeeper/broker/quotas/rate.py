"""Recent usage: rates over windows, and token buckets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_KEPT = 10_000
_LONGEST_MS = 2**31 - 1
"""The longest throttle time that fits into a response."""


class QuotaRate:
    """Usage per second over some windows, like Kafka's sampled Rate: missing windows count as time without usage."""

    def __init__(self, window_ms: int, windows: int) -> None:
        self._window_ms = window_ms
        self._windows = windows
        self._samples: deque[tuple[int, float]] = deque()  # start of the window, usage

    def record(self, count: float, now_ms: int) -> None:
        """Counts usage at `now_ms`."""
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append((now_ms, 0.0))
        began, total = self._samples[-1]
        self._samples[-1] = (began, total + count)

    def excess_ms(self, per_second: float, now_ms: int) -> int:
        """Milliseconds to pause until the rate falls to `per_second`; 0: it is not higher."""
        while self._samples and now_ms - self._samples[0][0] >= self._windows * self._window_ms:
            self._samples.popleft()
        if not self._samples:
            return 0
        elapsed_ms = now_ms - self._samples[0][0]
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        elapsed_ms += max(missing, 0) * self._window_ms
        rate = sum(total for _, total in self._samples) * 1000 / max(elapsed_ms, 1)
        return _waiting_ms((rate - per_second) * elapsed_ms, per_second)


class TokenBucket:
    """A token bucket like Kafka's: tokens are added at a rate, up to a limit, and may be overdrawn."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: the time in which an empty bucket refills completely."""
        self._seconds = seconds
        self._used = 0.0
        self._at_ms = 0

    def take(self, count: float, per_second: float, now_ms: int) -> None:
        """Takes tokens, even more than are available."""
        self._refill(per_second, now_ms)
        self._used += count

    def debt_ms(self, per_second: float, now_ms: int) -> int:
        """Milliseconds until the bucket is no longer overdrawn; 0: it is not."""
        self._refill(per_second, now_ms)
        return _waiting_ms((self._used - per_second * self._seconds) * 1000, per_second)

    def _refill(self, per_second: float, now_ms: int) -> None:
        self._used = max(self._used - per_second * (now_ms - self._at_ms) / 1000, 0.0)
        self._at_ms = now_ms


def _waiting_ms(excess: float, per_second: float) -> int:
    """Milliseconds until `excess`, in thousandths, is worked off at a rate per second, which may be 0 or tiny."""
    if excess <= 0:
        return 0
    return round(min(excess / per_second, _LONGEST_MS)) if per_second > 0 else _LONGEST_MS


class Recent(dict[K, V]):
    """The usage of the most recent `_KEPT` clients; beyond these, the client that was idle for longest is dropped."""

    def of(self, key: K, begin: Callable[[], V]) -> V:
        """The value of a key; `begin` makes a missing one. The key becomes the most recent one."""
        found = self.pop(key, None)
        if found is None:
            found = begin()
        self[key] = found
        if len(self) > _KEPT:
            del self[next(iter(self))]
        return found
