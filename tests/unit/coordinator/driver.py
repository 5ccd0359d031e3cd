"""One coordinator and its clients, for tests: a call is a method, an answer a `Reply`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from tests.memory_shell import MemoryLog, MemoryShell, Observer

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.result import Call, Record
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.delete_groups_response import DeleteGroupsResponse
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.heartbeat_response import HeartbeatResponse
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.leave_group_response import LeaveGroupResponse
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse
from groupkeeper.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponse
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import Message

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
INITIAL_DELAY_MS = 3_000

M = TypeVar("M", bound=Message)


class Reply:
    """The answer to one call, as far as it has come."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def is_parked(self) -> bool:
        return not self.messages

    def of(self, message_class: type[M]) -> M:
        """The answer; it must have come, once, and be of that class."""
        (message,) = self.messages
        assert isinstance(message, message_class)
        return message

    @property
    def joined(self) -> JoinGroupResponse:
        return self.of(JoinGroupResponse)

    @property
    def synced(self) -> SyncGroupResponse:
        return self.of(SyncGroupResponse)

    @property
    def error_code(self) -> int:
        (message,) = self.messages
        code: int = message.error_code  # type: ignore[attr-defined]
        return code


class Driver:
    """Drives a coordinator; times are relative: the tests never look at the clock."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._replies: dict[int, Reply] = {}
        self._fresh_ids = 0
        self.appended: list[Record] = []
        self.shell = MemoryShell(
            settings or Settings(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS),
            observer=Observer(appended=self.appended.append, answered=self._answered),
        )

    def _answered(self, call_id: int, message: Message) -> None:
        self._replies[call_id].messages.append(message)

    def send(self, request: Message, version: int, *, client_id: str = "c") -> Reply:
        self._fresh_ids += 1
        reply = Reply()
        call_id = self._fresh_ids
        self._replies[call_id] = reply
        call = Call(call_id, request, version, client_id, "/127.0.0.1", f"id{call_id}")
        self.shell.call(call)
        return reply

    def advance(self, milliseconds: int) -> None:
        self.shell.advance_to(self.shell.now_ms + milliseconds)

    def drain_records(self) -> list[Record]:
        """Records appended since the last look."""
        records, self.appended[:] = list(self.appended), []
        return records

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.shell.coordinator.state.find(group_id, ClassicGroup)
        assert group is not None
        return group

    def state(self, group_id: str = GROUP) -> str:
        """The group's state as clients are told it; Dead when there is none."""
        group = self.shell.coordinator.state.find(group_id, ClassicGroup)
        return "Dead" if group is None else group.state.value

    def rebuilt(self) -> Driver:
        """Another driver whose coordinator comes from this one's log."""
        other = Driver(self.shell.settings)
        other.shell.now_ms = self.shell.now_ms
        other.shell.log = MemoryLog()
        other.shell.log.entries = list(self.shell.log.entries)
        other.shell.log.end_offset = self.shell.log.end_offset
        other.shell.load()
        return other

    # --- membership

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        topics: Sequence[str] = ("t",),
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
    ) -> Reply:
        offers = {"range": subscription(topics)} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in offers.items()],
        )
        return self.send(request, version)

    def new_id(self, **join: object) -> str:
        """A member id given out by the first JoinGroup."""
        return self.join(**join).joined.member_id  # type: ignore[arg-type]

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> Reply:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=self.group(group_id).roster.generation if generation is None else generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[SyncGroupRequestAssignment(key, value) for key, value in (assignments or {}).items()],
        )
        return self.send(request, 5)

    def heartbeat(
        self, member_id: str, generation: int | None = None, *, group_id: str = GROUP, instance_id: str | None = None
    ) -> int:
        """The error code of a Heartbeat."""
        current = self.group(group_id).roster.generation if generation is None else generation
        return (
            self.send(HeartbeatRequest(group_id, current, member_id, instance_id), 4).of(HeartbeatResponse).error_code
        )

    def leave(self, *members: str | MemberIdentity, group_id: str = GROUP) -> list[int]:
        """The error codes of a LeaveGroup by member."""
        identities = [MemberIdentity(one) if isinstance(one, str) else one for one in members]
        response = self.send(LeaveGroupRequest(group_id, members=identities), 5).of(LeaveGroupResponse)
        assert response.error_code == 0
        return [member.error_code for member in response.members]

    def stable_group(self, count: int = 1, *, group_id: str = GROUP, topics: Sequence[str] = ("t",)) -> list[str]:
        """Makes a Stable group of dynamic members; the first of the returned ids leads it."""
        member_ids = [self.new_id(group_id=group_id, topics=topics) for _ in range(count)]
        replies = [self.join(one, group_id=group_id, topics=topics) for one in member_ids]
        self.advance(2 * REBALANCE_MS // 10)
        leader_id = replies[0].joined.leader
        self.sync(leader_id, group_id=group_id, assignments={one: one.encode() for one in member_ids})
        for one in member_ids:
            assert self.sync(one, group_id=group_id).synced.assignment == one.encode()
        assert self.state(group_id) == "Stable"
        assert leader_id == member_ids[0]
        return member_ids

    # --- offsets

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        group_id: str = GROUP,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        topic_id: bytes = bytes(16),
        version: int = 9,
    ) -> dict[tuple[str, int], int]:
        """Commits offsets; the error code by partition."""
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    topic, topic_id, [OffsetCommitRequestPartition(partition, offset, 5, metadata)]
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        response = self.send(request, version).of(OffsetCommitResponse)
        return {
            (topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    def fetch(
        self,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        group_id: str = GROUP,
        require_stable: bool = False,
        topic_id: bytes = bytes(16),
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """(offset, error code) by partition, in the order of the answer; all partitions by default."""
        topics = None
        if partitions is not None:
            topics = [OffsetFetchRequestTopics(topic, topic_id, [index]) for topic, index in partitions]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id, topics=topics)], require_stable=require_stable
        )
        (group,) = self.send(request, 10).of(OffsetFetchResponse).groups
        assert group.error_code == 0
        return {
            (topic.name, partition.partition_index): (partition.committed_offset, partition.error_code)
            for topic in group.topics
            for partition in topic.partitions
        }

    def delete_offsets(self, *partitions: tuple[str, int], group_id: str = GROUP) -> OffsetDeleteResponse:
        topics = [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(partition)])
            for topic, partition in partitions
        ]
        return self.send(OffsetDeleteRequest(group_id, topics), 0).of(OffsetDeleteResponse)

    def delete_groups(self, *group_ids: str) -> list[int]:
        """The error codes of a DeleteGroups by group."""
        response = self.send(DeleteGroupsRequest(group_ids), 2).of(DeleteGroupsResponse)
        return [result.error_code for result in response.results]


def subscription(topics: Sequence[str]) -> bytes:
    """A member's metadata as Kafka's consumers send it."""
    metadata = bytearray((0, 1))
    ConsumerProtocolSubscription(topics=topics).write(metadata, 1)
    return bytes(metadata)


def is_tombstone(record: Record) -> bool:
    return isinstance(record, Tombstone)
