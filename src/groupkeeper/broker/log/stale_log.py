"""The log of a leader that is cut off, while others lead."""

from __future__ import annotations

from copy import deepcopy

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.placement.placement import NO_LEADER, Placement
from groupkeeper.protocol.errors import NotLeaderOrFollower, OffsetOutOfRange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.record_batch import BatchHeader


class StaleLog(PartitionLog):
    """What such a leader takes the log for. It parts from the log of the others where these began to lead: what it
    appends passes the same checks, is in no file, and is lost. Its placement is what the leader knows, with the high
    watermark: that does not move, and before it both logs have the same records.
    """

    __slots__ = ("_log",)

    def __init__(self, log: PartitionLog, known: Placement) -> None:
        expiration_ms = log.producers.expiration_ms
        super().__init__(
            log.directory, log.topic, log.topic_id, log.index, log.config, log._files, expiration_ms, known
        )
        self._log = log
        self._segments, self._waiters = log._segments, log._waiters
        self.producers = deepcopy(log.producers)
        self.log_end_offset = log.log_end_offset

    def append(self, batch: bytes, now_ms: int, header: BatchHeader | None = None) -> int:
        """As other logs do. Raises `NotLeaderOrFollower` while the partition has no leader, as this node may be the
        next one, and once the node has the same log as the others again.
        """
        self._require_apart()
        return super().append(batch, now_ms, header)

    def append_made(self, batch: bytes, count: int, timestamp: int) -> int:
        """As `append`."""
        self._require_apart()
        return super().append_made(batch, count, timestamp)

    def _require_apart(self) -> None:
        if self._log.placement.leader == NO_LEADER or self.placement is self._log.placement:
            raise NotLeaderOrFollower

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True, end_offset: int | None = None) -> bytes:
        """As other logs do, up to the high watermark that the node knew."""
        end = self.high_watermark if end_offset is None else min(end_offset, self.high_watermark)
        if end < offset <= self.log_end_offset:
            return b""
        if offset > end:
            raise OffsetOutOfRange
        return self._log.read(offset, max_bytes, at_least_one=at_least_one, end_offset=end)

    def _write(self, last_offset: int, max_timestamp: int, length: int, parts: object) -> None:
        pass

    def end(self) -> None:
        """Its node knows of the others now: what waits learns who leads."""
        self.placement = self._log.placement
        self._log.tell_waiters(None)


def part(log: PartitionLog, end_offset: int) -> None:
    """Another node leads, or none, and its log ends at this offset: from here on, leaders that are cut off have logs of
    their own.
    """
    for node, known in log.placement.outdated.items():
        if log.placement.leader == node:
            join(log, node)
        elif known.leader == node:
            if node not in log.stale:
                log.stale = {**log.stale, node: StaleLog(log, known)}
            known.limit = end_offset if known.limit is None else min(known.limit, end_offset)


def join(log: PartitionLog, node: int) -> None:
    """The node has the same log as others again."""
    stale = log.stale.get(node)
    if isinstance(stale, StaleLog):
        log.stale = {one: other for one, other in log.stale.items() if one != node}
        stale.end()
