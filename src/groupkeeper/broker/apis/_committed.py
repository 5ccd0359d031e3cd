"""Waiting until all replicas in sync have what was appended, as `acks=all` asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groupkeeper.broker.log.produced import Produced
from groupkeeper.broker.log.waiter import wait_until
from groupkeeper.protocol.errors import NotLeaderOrFollower, RequestTimedOut
from groupkeeper.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse


class Uncommitted:
    """A batch that was appended, perhaps not to all replicas in sync.

    Attributes:
        log: the log.
    """

    def __init__(self, answer: PartitionProduceResponse, produced: Produced, node: int) -> None:
        """`node`: to which it came."""
        self.log = produced.log
        self._node = node
        self._answer = answer
        self._end_offset = answer.base_offset + produced.header.next_offset - produced.header.base_offset
        self._epoch = self.log.placement.known_to(node).epoch

    @property
    def has_moved(self) -> bool:
        """Whether another leader decides now, as far as the node knows."""
        return self.log.placement.known_to(self._node).epoch != self._epoch

    def has_been_decided(self) -> bool:
        """Whether it is committed, or has moved."""
        if self.log.placement.epoch == self._epoch and self.log.high_watermark >= self._end_offset:
            return True
        return self.has_moved

    def time_out(self) -> None:
        """Puts the error into the answer."""
        self._answer.error_code = RequestTimedOut.code

    def told_leader(self, may_tell: bool) -> int:
        """Puts the error into the answer; returns the leader, which versions that may tell it tell."""
        at = self.log.placement
        self._answer.error_code = NotLeaderOrFollower.code
        if may_tell:
            self._answer.current_leader = LeaderIdAndEpoch(at.leader, at.epoch)
        return at.leader


async def committed(batches: Iterable[Uncommitted], timeout_ms: int) -> None:
    """Waits until all batches are committed or have moved; after this time the others have an error: REQUEST_TIMED_OUT,
    also where fewer replicas than `min.insync.replicas` are left (Kafka 4.4.0).
    """
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    for batch in batches:
        await wait_until(batch.log, batch.has_been_decided, deadline_s)
        if not batch.has_been_decided():
            batch.time_out()
