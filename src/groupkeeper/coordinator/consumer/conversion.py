"""Online migration: a classic group becomes a consumer group, and the other way round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.classic.group import ClassicGroup, Member, Roster
from groupkeeper.coordinator.classic.record import group_record, group_tombstone
from groupkeeper.coordinator.classic.step import Step as ClassicStep
from groupkeeper.coordinator.classic.step import refuse_parked
from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import ClassicMetadata, ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.consumer.replay import LOG
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.kernel.result import Arm, Disarm, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import (
    ClassicRejoin,
    ClassicResync,
    ConsumerSession,
    JoinPhase,
    MemberSession,
    Revocation,
    SyncPhase,
)
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from groupkeeper.protocol.errors import GroupIdNotFound, RebalanceInProgress
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition
from groupkeeper.protocol.primitives import Message

_UPGRADE_POLICIES = frozenset(("bidirectional", "upgrade"))
_DOWNGRADE_POLICIES = frozenset(("bidirectional", "downgrade"))


# --- up


def upgrade(group: ClassicGroup, settings: Settings, topics: TopicsImage, now_ms: int) -> Step:
    """A step that starts with a classic group's members in a consumer group. Raises `GroupIdNotFound`."""
    _check_upgrade(group, settings)
    # Members at epoch 0 would count as joining for ever, so a group in its first rebalance starts at epoch 1.
    epoch = max(group.roster.generation, 1)
    members = [_upgraded_member(group, member, topics, epoch) for member in group.roster.members.values()]
    names = {name for member in members for name in member.subscribed_topic_names}
    group_id = group.group_id
    # An unfinished rebalance would have changed assignments, and so would a leader that has not noticed new partitions
    # yet: the group is outdated from the start.
    is_settled = group.soft.rebalance is None and _have_all(members, names, topics)
    metadata_hash = topics.metadata_hash(names) if is_settled else 0
    targets: dict[str, TargetAssignment] = {
        member.member_id: {topic_id: frozenset(some) for topic_id, some in member.assigned.items()}
        for member in members
    }
    records: list[Record] = [
        *(consumer_records.member_record(group_id, member) for member in members),
        consumer_records.epoch_record(group_id, epoch, metadata_hash),
        *(consumer_records.target_record(group_id, one, target) for one, target in targets.items()),
        LOG.target_epoch_record(group_id, epoch, 0),
        *(consumer_records.assignment_record(group_id, member) for member in members),
    ]
    converted = ConsumerGroup(group_id)
    for record in records:
        LOG.replay(converted, record)
    step = Step(converted, settings, topics, now_ms)
    step.start_with((group_tombstone(group_id), *records))
    _move_timers(step, group, members)
    step.release(refuse_parked(group.soft.rebalance, RebalanceInProgress.code))  # so that their members rejoin
    return step


def _check_upgrade(group: ClassicGroup, settings: Settings) -> None:
    reason = None
    if settings.group_consumer_migration_policy not in _UPGRADE_POLICIES:
        reason = "online upgrade is disabled"
    elif group.roster.protocol_type != PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.roster.members) > settings.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise _refusal(group.group_id, reason)


def _refusal(group_id: str, reason: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"Cannot upgrade classic group {group_id} to consumer group because {reason}.")


def _upgraded_member(group: ClassicGroup, member: Member, topics: TopicsImage, epoch: int) -> ConsumerMember:
    try:
        subscription = decode_subscription(member.protocols[0][1])
        # Cooperative members keep their assignment in the log until the next rebalance is complete.
        blob = member.assignment or group.stored.members.get(member.member_id, member).assignment
        assignment = decode_assignment(blob) if blob else ConsumerProtocolAssignment()
    except (MalformedMessage, IndexError) as error:
        raise _refusal(group.group_id, "the embedded consumer protocol is malformed") from error
    if assignment.user_data:
        raise _refusal(
            group.group_id,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        )
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned={
            topics.topics[topic.topic].topic_id: dict.fromkeys(topic.partitions, epoch)
            for topic in assignment.assigned_partitions
            if topic.topic in topics.topics and topic.partitions
        },
    )


def _have_all(members: Sequence[ConsumerMember], names: Iterable[str], topics: TopicsImage) -> bool:
    """Whether each partition of these topics is assigned to one of the members."""
    assigned = {(topic_id, one) for member in members for topic_id, some in member.assigned.items() for one in some}
    shapes = [topics.topics[name] for name in names if name in topics.topics]
    return all((shape.topic_id, one) in assigned for shape in shapes for one in range(shape.partition_count))


def _move_timers(step: Step, group: ClassicGroup, members: Sequence[ConsumerMember]) -> None:
    group_id = group.group_id
    step.arm(Disarm(JoinPhase(group_id)), Disarm(SyncPhase(group_id)))
    for member_id in (*group.roster.members, *group.soft.pending):
        step.arm(Disarm(MemberSession(group_id, member_id)))
    for member in members:
        step.arm_session(member)
        if group.soft.rebalance is not None:
            # A member that must rejoin but doesn't was lost during the rebalance.
            step.arm(Arm(ClassicRejoin(group_id, member.member_id), member.rebalance_timeout_ms))


# --- down


def must_downgrade(step: Step, leaving: Collection[str]) -> bool:
    """Whether the group becomes classic when the members `leaving` are gone: only classic members remain, they are at
    most `group_max_size`, and the migration policy allows it.
    """
    remaining = [member for member_id, member in step.group.members.items() if member_id not in leaving]
    return (
        0 < len(remaining) <= step.settings.group_max_size
        and all(member.classic is not None for member in remaining)
        and step.settings.group_consumer_migration_policy in _DOWNGRADE_POLICIES
    )


def downgrade(step: Step, leaving: Collection[str], response: Message | None, *, must_rebalance: bool = True) -> Result:
    """Downgrades a group to a classic group when all remaining members are classic: Stable with the target assignment,
    unless it `must_rebalance` at once. Replaces the records of the step.
    """
    group, logged = step.group, step.logged
    roster = Roster(protocol_type=PROTOCOL_TYPE, generation=logged.group_epoch, state_since_ms=step.now_ms)
    for member_id, member in group.members.items():
        if member_id not in leaving:
            target = group.targets.get(member_id, {})
            roster = roster.with_member(_downgraded_member(member, target, step.topics))
    roster = replace(roster, protocol_name=roster.select_protocol())
    roster = replace(roster, subscribed_topics=roster.find_subscribed_topics())
    classic = ClassicStep(ClassicGroup(group.group_id, roster), step.settings, step.now_ms)
    classic.records.extend((*LOG.group_tombstones(logged), group_record(group.group_id, roster)))
    for member_id in logged.members:
        for timer in (ConsumerSession, Revocation, ClassicRejoin, ClassicResync):
            classic.disarm(timer(group.group_id, member_id))
    for remaining in roster.members.values():
        classic.renew_session(remaining)
    if must_rebalance:
        classic.enter_join_phase()
        classic.settle_join_phase()
    return classic.result(response)


def _downgraded_member(member: ConsumerMember, target: TargetAssignment, topics: TopicsImage) -> Member:
    assert member.classic is not None
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=member.classic.protocols,
        assignment=encode_target(target, topics, member.classic),
    )


def encode_target(partitions: Mapping[bytes, Collection[int]], topics: TopicsImage, classic: ClassicMetadata) -> bytes:
    """A target assignment encoded for members of the classic protocol, in the version of their subscription."""
    version = int.from_bytes(classic.protocols[0][1][:2], "big", signed=True)
    assigned = [TopicPartition(name, some) for _, name, some in topics.named(partitions)]
    version = min(max(version, 0), ConsumerProtocolAssignment.MAX_VERSION)
    return encode_assignment(ConsumerProtocolAssignment(assigned), version)


def remove_or_downgrade(step: Step, leaving: Sequence[str], response: Message | None) -> Result:
    """Removes members; if only classic members remain, the group may become a classic group."""
    if must_downgrade(step, leaving):
        return downgrade(step, leaving, response)
    step.remove_members(leaving)
    return step.result(response)


def read_subscription(classic: ClassicMetadata) -> ConsumerProtocolSubscription:
    """A classic member's subscription, from the metadata of its first protocol. Raises `MalformedMessage`."""
    return decode_subscription(classic.protocols[0][1])
