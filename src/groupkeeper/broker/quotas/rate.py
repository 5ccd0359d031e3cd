"""How much was used of late."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")

_KEPT = 10_000
_LONGEST_MS = 2**31 - 1
"""What fits into an answer."""


class Rate:
    """What is used per second over some windows, as Kafka's sampled Rate: before the first one nothing was."""

    def __init__(self, window_ms: int, windows: int) -> None:
        self._window_ms = window_ms
        self._windows = windows
        self._samples: deque[tuple[int, float]] = deque()  # begin of a window, how much

    def record(self, count: float, now_ms: int) -> None:
        """Counts what was used just now."""
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append((now_ms, 0.0))
        began, total = self._samples[-1]
        self._samples[-1] = (began, total + count)

    def excess_ms(self, per_second: float, now_ms: int) -> int:
        """How long to pause so that the rate falls to this one; 0: it is not above."""
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
    """Tokens that come at a rate, up to a number, and may be overdrawn once, as Kafka's."""

    def __init__(self, seconds: float) -> None:
        """It is full when nothing was taken for so long."""
        self._seconds = seconds
        self._used = 0.0
        self._at_ms = 0

    def take(self, count: float, per_second: float, now_ms: int) -> None:
        """Takes tokens, also beyond the available ones."""
        self._refill(per_second, now_ms)
        self._used += count

    def debt_ms(self, per_second: float, now_ms: int) -> int:
        """After what time no token is missing."""
        self._refill(per_second, now_ms)
        return _waiting_ms((self._used - per_second * self._seconds) * 1000, per_second)

    def _refill(self, per_second: float, now_ms: int) -> None:
        self._used = max(self._used - per_second * (now_ms - self._at_ms) / 1000, 0.0)
        self._at_ms = now_ms


def _waiting_ms(excess: float, per_second: float) -> int:
    """For how long to wait until an excess, in thousandths, is gone at a rate, which may be 0 or next to it."""
    if excess <= 0:
        return 0
    return round(min(excess / per_second, _LONGEST_MS)) if per_second > 0 else _LONGEST_MS


class Recent(dict[K, V]):
    """What the clients that came last used: so many of them; beyond, the one idle for longest is dropped."""

    def of(self, key: K, begin: Callable[[], V]) -> V:
        """What there is of a key, which is the one used last now; else what `begin` makes."""
        found = self.pop(key, None)
        if found is None:
            found = begin()
        self[key] = found
        if len(self) > _KEPT:
            del self[next(iter(self))]
        return found
