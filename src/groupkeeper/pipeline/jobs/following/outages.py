"""Which failures of a cluster to report, and when to retry the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from groupkeeper.client.errors import BrokersNotFound, CallTimedOut, ConnectionFailed
from groupkeeper.pipeline.errors import SourceError

_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class Outage:
    """The state of one cluster's outage; the defaults mean no outage. Times are those of `time.monotonic`."""

    retry_at: float = 0.0
    pause_s: float = _FIRST_PAUSE_S
    told: str | None = None
    """The last reported reason why the cluster is not read; None: it is read."""
    is_away: bool = False
    """Whether it has been reported that the cluster does not answer."""

    def is_news(self, text: str, *, is_away: bool = False) -> bool:
        """Whether to report this: once per outage, however often requests fail because of it."""
        is_known = is_away and self.is_away
        self.is_away |= is_away
        if is_known or self.told == text:
            return False
        self.told = text
        return True

    def pause(self, now: float) -> None:
        """Retry the cluster, each time after a longer pause."""
        self.retry_at = now + self.pause_s
        self.pause_s = min(2 * self.pause_s, _LONGEST_PAUSE_S)

    def end(self) -> bool:
        """The cluster answers and is being read again. Returns whether an outage had been reported."""
        was_told = self.told is not None
        self.told, self.is_away, self.pause_s = None, False, _FIRST_PAUSE_S
        return was_told


def is_unanswered(error: BaseException | None) -> bool:
    """Whether the error only means an outage: the cluster could not be reached, or did not answer in time."""
    cause = error.__cause__ if isinstance(error, SourceError) else None
    if isinstance(cause, BrokersNotFound) and cause.__cause__ is not None:
        cause = cause.__cause__
    return isinstance(cause, ConnectionFailed | CallTimedOut | BrokersNotFound)
