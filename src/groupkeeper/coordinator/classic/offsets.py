"""Checks of commits, fetches and deletions of offsets of a classic group
(`groupkeeper.coordinator.handlers.OffsetRules`).
"""

from __future__ import annotations

from groupkeeper.coordinator.classic.group import ClassicGroup, Syncing
from groupkeeper.coordinator.classic.step import check_generation, check_member, session_of
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import Arm, GroupCall
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.errors import NonEmptyGroup, RebalanceInProgress, UnknownMemberId
from groupkeeper.protocol.messages import OffsetCommitRequest, OffsetFetchRequestGroup, TxnOffsetCommitRequest
from groupkeeper.rules import expiry


def check_commit(
    group: ClassicGroup, topics: TopicsImage, call: GroupCall, request: OffsetCommitRequest
) -> tuple[Arm, ...]:
    """Raises the error that refuses the whole commit; returns the renewal of the member's session."""
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    if generation < 0:
        if group.state is GroupState.EMPTY:
            return ()
        if not member_id and request.group_instance_id is None:
            raise UnknownMemberId
    roster = group.roster
    check_member(roster, member_id, request.group_instance_id)
    check_generation(roster, generation)
    if type(group.soft.rebalance) is Syncing:
        raise RebalanceInProgress
    return (session_of(request.group_id, roster.members[member_id]),)


def check_transaction(group: ClassicGroup, topics: TopicsImage, request: TxnOffsetCommitRequest) -> None:
    """Raises the error that refuses a transactional commit. Unlike `check_commit`, accepts it during a rebalance, and
    in every state if it names neither generation, member nor instance; renews no session.
    """
    has_no_member = not request.member_id and request.group_instance_id is None
    if request.generation_id_or_member_epoch < 0 and (has_no_member or group.state is GroupState.EMPTY):
        return
    check_member(group.roster, request.member_id, request.group_instance_id)
    check_generation(group.roster, request.generation_id_or_member_epoch)


def check_fetch(group: ClassicGroup, request: OffsetFetchRequestGroup) -> None:
    """Accepts every fetch."""


def check_delete(group: ClassicGroup) -> None:
    """Refuses deletions in a group with members without the consumer protocol: the topics they read are unknown."""
    if group.state is not GroupState.EMPTY and not group.roster.uses_consumer_protocol():
        raise NonEmptyGroup


def do_offsets_age(group: ClassicGroup) -> bool:
    """Whether the group's offsets may expire in its present state."""
    roster = group.roster
    return expiry.do_offsets_age(
        has_members=roster.protocol_type is not None and group.state is not GroupState.EMPTY,
        is_settled=group.state is GroupState.STABLE,
        are_topics_known=roster.uses_consumer_protocol() and roster.subscribed_topics is not None,
    )


def aging_since_ms(group: ClassicGroup) -> int | None:
    """The time from which the age of all offsets of the group counts; None: from each commit."""
    return expiry.emptied_ms(
        has_protocol=group.roster.protocol_type is not None,
        has_members=group.state is not GroupState.EMPTY,
        state_since_ms=group.roster.state_since_ms,
    )
