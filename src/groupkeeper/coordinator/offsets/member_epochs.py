"""Checks of commits, fetches and deletions of offsets of groups with member epochs: consumer and streams groups
(`groupkeeper.coordinator.handlers.OffsetRules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from groupkeeper.coordinator.kernel.result import GroupCall
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import OffsetCommitRequest, OffsetFetchRequestGroup, TxnOffsetCommitRequest

_FIRST_VERSION_WITH_MEMBER_EPOCH = 9


class CommittingMember(Protocol):
    """The attributes of a member that these checks use."""

    @property
    def member_epoch(self) -> int: ...

    @property
    def is_classic(self) -> bool:
        """Whether the member uses the classic protocol; its epoch is then a generation."""


class CommittingGroup(Protocol):
    """The attributes of a group that these checks use."""

    @property
    def members(self) -> Mapping[str, CommittingMember]: ...

    def since(self, member: Any, topics: TopicsImage, topic: str, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which a member got a partition; None when it does not have it."""


def check_commit(
    group: CommittingGroup, topics: TopicsImage, call: GroupCall, request: OffsetCommitRequest
) -> tuple[()]:
    """Raises the error that refuses the whole commit: if one partition is refused, none is stored. A commit does not
    renew the member's session.
    """
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return ()
    member = _member(group, request.member_id)
    if not member.is_classic and call.version < _FIRST_VERSION_WITH_MEMBER_EPOCH:
        raise errors.UnsupportedVersion
    _check_epoch(group, member, topics, request)
    return ()


def check_transaction(group: CommittingGroup, topics: TopicsImage, request: TxnOffsetCommitRequest) -> None:
    """As `check_commit`.

    A request without epoch is not checked if the group has no members, or the request names none.
    """
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and (not group.members or (not request.member_id and request.group_instance_id is None)):
        return
    _check_epoch(group, _member(group, request.member_id), topics, request)


def check_fetch(group: CommittingGroup, request: OffsetFetchRequestGroup) -> KafkaError | None:
    """The error that refuses a fetch, or None. A request without member id and epoch is not checked."""
    if request.member_id is None and request.member_epoch < 0:
        return None
    try:
        member = _member(group, request.member_id)
    except errors.UnknownMemberId as error:
        return error
    return None if request.member_epoch == member.member_epoch else _stale(member)


def check_delete(group: CommittingGroup) -> None:
    """Refuses no request as a whole; topics that members subscribe to are refused one by one."""


def do_offsets_age(group: CommittingGroup) -> bool:
    """Always True: the topics that members read are known in each state."""
    return True


def aging_since_ms(group: CommittingGroup) -> None:
    """Always None: the age of an offset counts from its commit."""


def _member(group: CommittingGroup, member_id: str | None) -> CommittingMember:
    member = group.members.get(member_id or "")
    if member is None:
        raise errors.UnknownMemberId
    return member


def _stale(member: CommittingMember) -> KafkaError:
    return errors.IllegalGeneration() if member.is_classic else errors.StaleMemberEpoch()


def _check_epoch(
    group: CommittingGroup,
    member: CommittingMember,
    topics: TopicsImage,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
) -> None:
    """Raises an error for a wrong epoch. An older epoch is accepted for partitions that the member has had
    since then.
    """
    epoch = request.generation_id_or_member_epoch
    if epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise _stale(member)
    for topic in request.topics:
        for partition in topic.partitions:
            since = group.since(member, topics, topic.name, topic.topic_id, partition.partition_index)
            if since is None or since > epoch:
                raise _stale(member)
