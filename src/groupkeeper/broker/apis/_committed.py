"""Waits until all in-sync replicas have the appended records, as `acks=all` requires."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.pending_replication import PendingReplication
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.produced import Produced
from groupkeeper.protocol.errors import NotLeaderOrFollower, RequestTimedOut
from groupkeeper.protocol.messages.produce_response import LeaderIdAndEpoch, PartitionProduceResponse

LEADERS_SINCE = 10


class Uncommitted(PendingReplication):
    """A produced batch that waits for in-sync replicas."""

    def __init__(self, response: PartitionProduceResponse, produced: Produced, node: int) -> None:
        """`node`: the node that got the request."""
        end_offset = response.base_offset + produced.header.next_offset - produced.header.base_offset
        super().__init__(produced.log, end_offset, node)
        self._response = response

    def time_out(self) -> None:
        """Sets REQUEST_TIMED_OUT in the batch's response."""
        self._response.error_code = RequestTimedOut.code

    def refuse_with_leader(self, call: Call) -> int:
        """Sets NOT_LEADER_OR_FOLLOWER and the new leader in the batch's response; returns the leader."""
        self._response.error_code = NotLeaderOrFollower.code
        return set_leader(self._response, self.log, call)


def set_leader(response: PartitionProduceResponse, log: PartitionLog, call: Call) -> int:
    """Sets a partition's leader, as the node sees it, if the version has the field; returns the leader."""
    known = log.placement.known_to(call.node)
    if call.api_version >= LEADERS_SINCE:
        response.current_leader = LeaderIdAndEpoch(known.leader, known.epoch)
    return known.leader


async def committed(batches: Iterable[Uncommitted], timeout_ms: int) -> None:
    """Waits until all batches are committed or have moved. After `timeout_ms` the others get REQUEST_TIMED_OUT, also if
    too few replicas are in sync (as in Kafka 4.4.0).
    """
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    for batch in batches:
        if not await batch.wait_until_decided(deadline_s):
            batch.time_out()
