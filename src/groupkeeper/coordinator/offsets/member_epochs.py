"""Who of a consumer or streams group may commit and fetch offsets."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.state import Group
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember
from groupkeeper.protocol.errors import (
    IllegalGeneration,
    KafkaError,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from groupkeeper.protocol.primitives import ZERO_UUID

_FIRST_VERSION_WITH_MEMBER_EPOCH = 9


def check_consumer_commit(
    group: ConsumerGroup | StreamsGroup, topics: TopicsImage, version: int, request: OffsetCommitRequest
) -> None:
    """Raises what refuses the whole commit; nothing is stored of one that is refused in part."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return
    member = _member(group, request.member_id)
    if not _is_classic(member) and version < _FIRST_VERSION_WITH_MEMBER_EPOCH:
        raise UnsupportedVersion
    partitions = (
        (topic.name, topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    _check_epoch(group, member, epoch, topics, partitions)


def check_consumer_transaction(
    group: ConsumerGroup | StreamsGroup, topics: TopicsImage, request: TxnOffsetCommitRequest
) -> None:
    """As a commit, but a stale epoch is answered as an illegal generation, and without member no check is made."""
    epoch = request.generation_id
    if epoch < 0 and (not group.members or (not request.member_id and request.group_instance_id is None)):
        return
    partitions = (
        (topic.name, ZERO_UUID, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    try:
        _check_epoch(group, _member(group, request.member_id), epoch, topics, partitions)
    except StaleMemberEpoch as error:
        raise IllegalGeneration from error


def check_consumer_fetch(group: Group | None, request: OffsetFetchRequestGroup) -> KafkaError | None:
    """What refuses a fetch, or None. Without member id and epoch nothing is checked, nor in groups of another type."""
    if not isinstance(group, ConsumerGroup | StreamsGroup) or (request.member_id is None and request.member_epoch < 0):
        return None
    try:
        member = _member(group, request.member_id)
        if request.member_epoch != member.member_epoch:
            return _stale(member)
    except UnknownMemberId as error:
        return error
    return None


def _member(group: ConsumerGroup | StreamsGroup, member_id: str | None) -> ConsumerMember | StreamsMember:
    member: ConsumerMember | StreamsMember | None = group.members.get(member_id or "")
    if member is None:
        raise UnknownMemberId
    return member


def _is_classic(member: ConsumerMember | StreamsMember) -> bool:
    return isinstance(member, ConsumerMember) and member.classic is not None


def _stale(member: ConsumerMember | StreamsMember) -> KafkaError:
    return IllegalGeneration() if _is_classic(member) else StaleMemberEpoch()


def _check_epoch(
    group: ConsumerGroup | StreamsGroup,
    member: ConsumerMember | StreamsMember,
    epoch: int,
    topics: TopicsImage,
    partitions: Iterable[tuple[str, bytes, int]],
) -> None:
    """An older epoch will do for partitions that the member has had since then."""
    if epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise _stale(member)
    for name, topic_id, partition in partitions:
        if isinstance(member, ConsumerMember):
            since = _since(member, topics, name, topic_id, partition)
        else:
            assert isinstance(group, StreamsGroup)
            since = group.since(member, name, partition)
        if since is None or since > epoch:
            raise _stale(member)


def _since(member: ConsumerMember, topics: TopicsImage, name: str, topic_id: bytes, partition: int) -> int | None:
    """The epoch in which a member got a partition; None when it hasn't got it."""
    if topic_id == ZERO_UUID:
        topic_id = topics.topics[name].topic_id if name in topics.topics else ZERO_UUID
    since = member.assigned.get(topic_id, {}).get(partition)
    return member.pending_revocation.get(topic_id, {}).get(partition) if since is None else since
