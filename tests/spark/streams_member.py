"""A member of a streams group by raw requests: no client library but Java's speaks that protocol."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology

__all__ = ["PATIENT", "StreamsMember"]

PATIENCE_S = 180
PATIENT = dict.fromkeys(("socket.connection.setup.timeout.ms", "default.api.timeout.ms"), str(PATIENCE_S * 1000))
"""A busy machine is waited for."""
LEAVES = -1
NOT_READY = (14, 15, 16)
NOTE = "note"
"""The metadata of commits."""

A = TypeVar("A", m.StreamsGroupHeartbeatResponse, m.OffsetCommitResponse)


class StreamsMember:
    """It reads a topic; each method takes its own connection, which the membership outlives."""

    def __init__(
        self, servers: str, group_id: str, topic: str, member_id: str, client_id: str = "streams-client"
    ) -> None:
        self.member_id = member_id
        self.epoch = 0
        self._servers = servers
        self._client_id = client_id
        self._group_id = group_id
        self._topic = topic

    def join(self, tasks: int) -> None:
        """Join, and beat until so many tasks are assigned."""
        asyncio.run(self._find_coordinator())
        topology = Topology(1, [Subtopology("0", source_topics=[self._topic])])
        answer = self._beat(0, topology=topology, process_id="process-1", rebalance_timeout_ms=9000)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            given = answer.active_tasks
            if given is not None and sum(len(each.partitions) for each in given) == tasks:
                break
            assert time.monotonic() < deadline, answer
            answer = self._beat(answer.member_epoch)
        self.epoch = self._beat(answer.member_epoch, active_tasks=given).member_epoch

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets of the topic, by partition, as a member of this epoch."""
        parts = [m.OffsetCommitRequestPartition(number, offset, -1, NOTE) for number, offset in offsets.items()]
        topics = [m.OffsetCommitRequestTopic(self._topic, partitions=parts)]
        request = m.OffsetCommitRequest(self._group_id, self.epoch, self.member_id, topics=topics)
        answer = asyncio.run(self._ask(request, m.OffsetCommitResponse))
        codes = [part.error_code for each in answer.topics for part in each.partitions]
        assert codes == [0] * len(offsets)

    def beat(self) -> None:
        """Stay a member."""
        self.epoch = self._beat(self.epoch).member_epoch

    def leave(self) -> None:
        self._beat(LEAVES)

    def _beat(self, epoch: int, **told: Any) -> m.StreamsGroupHeartbeatResponse:
        joining: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} if epoch == 0 else {}
        if "active_tasks" in told:
            joining = {"standby_tasks": [], "warmup_tasks": []}
        request = m.StreamsGroupHeartbeatRequest(self._group_id, self.member_id, epoch, **{**joining, **told})
        deadline = time.monotonic() + PATIENCE_S
        while (answer := asyncio.run(self._ask(request, m.StreamsGroupHeartbeatResponse))).error_code in NOT_READY:
            assert time.monotonic() < deadline, answer
        assert not answer.error_code, (answer.error_code, answer.error_message)
        return answer

    async def _find_coordinator(self) -> None:
        """Brokers make the offsets topic when somebody looks for a coordinator first."""
        async with Admin(self._servers, properties=PATIENT) as admin:
            (await admin.find_coordinators([self._group_id])).all()

    async def _ask(self, request: Any, answer_type: type[A]) -> A:
        properties = {"client.id": self._client_id, **PATIENT}
        cluster = Cluster(parse_bootstrap_servers(self._servers), Settings.of_properties(properties), security_of({}))
        try:
            deadline = cluster.deadline("ask", PATIENCE_S * 1000)
            await cluster.connect(deadline)
            return await cluster.ask_any(answer_type, request, deadline)
        finally:
            await cluster.close()
