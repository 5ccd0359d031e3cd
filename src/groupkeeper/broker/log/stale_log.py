"""The log of a cut-off leader, while another node leads."""

from __future__ import annotations

from copy import deepcopy

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.placement.placement import NO_LEADER, Placement
from groupkeeper.protocol.errors import NotLeaderOrFollower, OffsetOutOfRange
from groupkeeper.protocol.record_batch import BatchHeader


class StaleLog(PartitionLog):
    """The log as a cut-off leader sees it. It diverges from the real log where another leader took over: its appends
    pass the same checks, but are not stored, and are lost. Its placement is the one that the node knows; its high
    watermark doesn't move, and below it both logs have the same records.
    """

    __slots__ = ("_log",)

    def __init__(self, log: PartitionLog, known: Placement) -> None:
        expiration_ms = log.producers.expiration_ms
        super().__init__(
            log.directory, log.topic, log.topic_id, log.index, log.config, log._files, expiration_ms, known
        )
        self._log = log
        self.segments, self.waiters = log.segments, log.waiters
        self.producers = deepcopy(log.producers)
        self.log_end_offset = log.log_end_offset

    def append(self, batch: bytes, now_ms: int, header: BatchHeader | None = None) -> int:
        """Checks and counts a batch without storing it. Raises `NotLeaderOrFollower` while the partition has no leader,
        as this node may be the next one, and when the node is no longer cut off.
        """
        self._require_apart()
        return super().append(batch, now_ms, header)

    def append_built(self, batch: bytes, count: int, timestamp: int) -> int:
        """As `append`."""
        self._require_apart()
        return super().append_built(batch, count, timestamp)

    def _require_apart(self) -> None:
        if self._log.placement.leader == NO_LEADER or self.placement is self._log.placement:
            raise NotLeaderOrFollower

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True, end_offset: int | None = None) -> bytes:
        """Reads the real log, up to the high watermark that the node knew."""
        end = self.high_watermark if end_offset is None else min(end_offset, self.high_watermark)
        if end < offset <= self.log_end_offset:
            return b""
        if offset > end:
            raise OffsetOutOfRange
        return self._log.read(offset, max_bytes, at_least_one=at_least_one, end_offset=end)

    def _write(self, last_offset: int, max_timestamp: int, length: int, parts: object) -> None:
        pass

    def end(self) -> None:
        """Called when the node is no longer cut off: waiting requests see the real leader."""
        self.placement = self._log.placement
        self._log.tell_waiters(None)


def diverge(log: PartitionLog, end_offset: int) -> None:
    """Called when the leader changed: gives cut-off former leaders stale logs. `end_offset`: the end of the new
    leader's log.
    """
    for node, known in log.placement.known_by_cut_off_node.items():
        if log.placement.leader == node:
            rejoin(log, node)
        elif known.leader == node:
            if node not in log.stale:
                log.stale = {**log.stale, node: StaleLog(log, known)}
            held = known.held_high_watermark
            known.held_high_watermark = end_offset if held is None else min(held, end_offset)


def rejoin(log: PartitionLog, node: int) -> None:
    """Ends a node's stale log, if it has one."""
    stale = log.stale.get(node)
    if isinstance(stale, StaleLog):
        log.stale = {one: other for one, other in log.stale.items() if one != node}
        stale.end()
