"""Appended records that in-sync replicas may still lack."""

from __future__ import annotations

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.waiter import wait_until

_ALL_KNOW = -1


class PendingReplication:
    """The records of a log before an offset, at the time when its leader appended them.

    Attributes:
        log: the log.
    """

    def __init__(self, log: PartitionLog, end_offset: int, node: int = _ALL_KNOW) -> None:
        """`node`: the leader that appended them, if it may be cut off."""
        self.log = log
        self._node = node
        self._end_offset = end_offset
        self._led_since = log.placement.known_to(node).led_since

    @property
    def is_committed(self) -> bool:
        """Whether all in-sync replicas have the records."""
        log = self.log
        return (
            log.placement.led_since == self._led_since
            and log.high_watermark >= self._end_offset
            and log.failure is None
        )

    @property
    def has_moved(self) -> bool:
        """Whether the leader has changed, as the node sees it, or the log has failed."""
        log = self.log
        return log.placement.known_to(self._node).led_since != self._led_since or log.failure is not None

    def is_decided(self) -> bool:
        """Whether the records are committed, or have moved."""
        return self.is_committed or self.has_moved

    async def wait_until_decided(self, deadline_s: float | None = None) -> bool:
        """Waits until `is_decided`, at most until `deadline_s` (the event loop's time); returns whether it is."""
        await wait_until(self.log, self.is_decided, deadline_s)
        return self.is_decided()
