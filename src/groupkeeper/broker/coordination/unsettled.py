"""What was appended to a log, perhaps not to all replicas in sync."""

from __future__ import annotations

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.waiter import wait_until

_ALL_KNOW = -1


class Unsettled:
    """The records of a log before an offset, since they were appended by its leader.

    Attributes:
        log: the log.
    """

    def __init__(self, log: PartitionLog, end_offset: int, node: int = _ALL_KNOW) -> None:
        """`node`: the one that appended them, if it may be cut off."""
        self.log = log
        self._node = node
        self._end_offset = end_offset
        self._led_since = log.placement.known_to(node).led_since

    @property
    def is_committed(self) -> bool:
        """Whether all replicas in sync have them."""
        log = self.log
        return (
            log.placement.led_since == self._led_since
            and log.high_watermark >= self._end_offset
            and log.failure is None
        )

    @property
    def has_moved(self) -> bool:
        """Whether the leader has changed, as far as the node knows, or the log has failed."""
        log = self.log
        return log.placement.known_to(self._node).led_since != self._led_since or log.failure is not None

    def is_decided(self) -> bool:
        """Whether one of both is so."""
        return self.is_committed or self.has_moved

    async def decided(self, deadline_s: float | None = None) -> bool:
        """Waits until that is so, or until a time of the event loop's clock; returns whether it is."""
        await wait_until(self.log, self.is_decided, deadline_s)
        return self.is_decided()
