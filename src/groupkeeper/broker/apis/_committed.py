"""Waiting until all replicas in sync have what was appended, as `acks=all` asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.unsettled import Unsettled
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.produced import Produced
from groupkeeper.protocol.errors import NotLeaderOrFollower, RequestTimedOut
from groupkeeper.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse

LEADERS_SINCE = 10


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

    def told_leader(self, call: Call) -> int:
        """Puts the error into the answer, with the leader; returns that."""
        self._answer.error_code = NotLeaderOrFollower.code
        return tell_leader(self._answer, self.log, call)


def tell_leader(answer: PartitionProduceResponse, log: PartitionLog, call: Call) -> int:
    """Names a partition's leader, as far as the node knows it, if the version can; returns it."""
    known = log.placement.known_to(call.node)
    if call.api_version >= LEADERS_SINCE:
        answer.current_leader = LeaderIdAndEpoch(known.leader, known.epoch)
    return known.leader


async def committed(batches: Iterable[Uncommitted], timeout_ms: int) -> None:
    """Waits until all batches are committed or have moved; after this time the others have an error: REQUEST_TIMED_OUT,
    also where fewer replicas than `min.insync.replicas` are left (Kafka 4.4.0).
    """
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    for batch in batches:
        if not await batch.decided(deadline_s):
            batch.time_out()
