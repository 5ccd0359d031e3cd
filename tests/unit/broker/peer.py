"""A peer of a broker in the same process: whole frames, no sockets. And a log of it that fails when it is told to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupkeeper.broker.authorizer import Authorizer, Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.network.connection import Connection
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record_batch import BatchHeader, Record
from groupkeeper.security.identity import Identity

UNKNOWN_ID = bytes([9] * 16)


class Peer(Connection):
    """Sends requests as a connection does; the answer is what its bytes say."""

    def __init__(self, broker: Broker) -> None:
        self.listener = self.security_protocol = "PLAINTEXT"
        self.client_host = "/127.0.0.1"
        self.identity = Identity()
        self.admission = None
        self.broker = broker

    async def exchange(self, frame: bytes) -> bytes:
        """The bytes of the answer to those of a request."""
        answer = self.broker.server.answer(self, frame)
        if callable(answer):
            answer = await answer()
        assert answer is not None
        return answer

    async def ask(self, request: RootMessage, version: int) -> Any:
        """The response of the request's API."""
        frame = encode_request(7, "c", request, version)
        answer = await self.exchange(frame[4:])
        correlation_id, response = decode_response(response_class(request.API_KEY), answer[4:], version)
        assert correlation_id == 7
        return response

    async def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        group_id: str = "g",
        version: int = 9,
        generation: int = -1,
        member_id: str = "",
        topic_id: bytes = bytes(16),
    ) -> dict[tuple[str, int], int]:
        """The error code by partition, in the answer's order; by topic id (text) from version 10 on."""
        topics = [
            m.OffsetCommitRequestTopic(
                "" if version >= 10 else topic, topic_id, [m.OffsetCommitRequestPartition(partition, offset, -1, "")]
            )
            for (topic, partition), offset in offsets.items()
        ]
        request = m.OffsetCommitRequest(group_id, generation, member_id, topics=topics)
        response = await self.ask(request, version)
        return {
            (topic.name or topic.topic_id.hex(), partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    async def fetch(
        self, partitions: Sequence[tuple[str, int]] | None = None, *, group_id: str = "g"
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """(offset, error code) by partition, of all partitions by default."""
        topics = None
        if partitions is not None:
            topics = [m.OffsetFetchRequestTopics(topic, partition_indexes=[index]) for topic, index in partitions]
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id, topics=topics)])
        (group,) = (await self.ask(request, 9)).groups
        assert group.error_code == 0
        return {
            (topic.name, one.partition_index): (one.committed_offset, one.error_code)
            for topic in group.topics
            for one in topic.partitions
        }

    def join_request(
        self, member_id: str = "", *, group_id: str = "g", instance_id: str | None = None
    ) -> m.JoinGroupRequest:
        protocols = [m.JoinGroupRequestProtocol("range", b"")]
        return m.JoinGroupRequest(group_id, 10_000, 60_000, member_id, instance_id, "consumer", protocols)

    async def stable_member(
        self, group_id: str = "g", protocols: Sequence[m.JoinGroupRequestProtocol] | None = None
    ) -> str:
        """Makes a Stable group of one member and returns its id."""
        request = self.join_request(group_id=group_id, instance_id=f"static-{group_id}")
        request.protocols = request.protocols if protocols is None else protocols
        member_id: str = (await self.ask(request, 9)).member_id
        assignments = [m.SyncGroupRequestAssignment(member_id, b"assigned")]
        sync = m.SyncGroupRequest(group_id, 1, member_id, None, "consumer", "range", assignments)
        assert (await self.ask(sync, 5)).assignment == b"assigned"
        return member_id


def peer_with_topic(broker: Broker) -> Peer:
    """A peer of a broker with coordinators, and the topic t of 2 partitions."""
    broker.topics.create("t", 2, {})
    broker.groups.ensure_topic()
    return Peer(broker)


class Denies(Authorizer):
    """Refuses what it is told to, by operation, resource type and name."""

    def __init__(self, *refused: tuple[Operation, ResourceType, str]) -> None:
        self._refused = refused

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return (operation, resource_type, name) not in self._refused


class FailingLog(PartitionLog):
    """Raises what `failures` has for a method: reading before, appending after its work is done."""

    failures: Mapping[str, Iterator[Exception]] = {}

    def append_built(self, batch: bytes, count: int, timestamp: int) -> int:
        first = super().append_built(batch, count, timestamp)
        self._fail("append_built")
        return first

    def records(self, offset: int = 0) -> Iterator[tuple[BatchHeader, list[Record]]]:
        self._fail("records")
        return super().records(offset)

    def _fail(self, name: str) -> None:
        for error in self.failures.get(name, ()):
            raise error


def fail(log: PartitionLog, name: str, error: Exception, *, times: int = 1) -> list[Exception]:
    """Lets a method of the log raise so many times; what was raised is in the list."""
    assert isinstance(log, FailingLog)
    raised: list[Exception] = []

    def errors() -> Iterator[Exception]:
        while len(raised) < times:
            raised.append(error)
            yield error

    log.failures = {name: errors()}
    return raised
