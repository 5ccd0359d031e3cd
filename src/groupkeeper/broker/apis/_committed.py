"""Waiting until all replicas in sync have what was appended, as `acks=all` asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groupkeeper.broker.coordination.unsettled import Unsettled
from groupkeeper.broker.log.produced import Produced
from groupkeeper.protocol.errors import NotLeaderOrFollower, RequestTimedOut
from groupkeeper.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse


class Uncommitted(Unsettled):
    """A batch of a producer that waits."""

    def __init__(self, answer: PartitionProduceResponse, produced: Produced, node: int) -> None:
        """`node`: to which it came."""
        end_offset = answer.base_offset + produced.header.next_offset - produced.header.base_offset
        super().__init__(produced.log, end_offset, node)
        self._answer = answer

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
        if not await batch.decided(deadline_s):
            batch.time_out()
