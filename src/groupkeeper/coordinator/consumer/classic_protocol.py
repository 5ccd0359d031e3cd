"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of consumer group members that use the classic protocol."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.classic import join as classic_join
from groupkeeper.coordinator.classic.step import check_protocol
from groupkeeper.coordinator.consumer.conversion import (
    downgrade,
    encode_target,
    must_downgrade,
    read_subscription,
    remove_or_downgrade,
)
from groupkeeper.coordinator.consumer.group import (
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
)
from groupkeeper.coordinator.consumer.regex import follow_subscription
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.epochs.checks import check_size, require_member
from groupkeeper.coordinator.epochs.group import LEFT_STATICALLY_EPOCH
from groupkeeper.coordinator.handlers import ClassicRequest
from groupkeeper.coordinator.kernel.result import Arm, Disarm, GroupCall, Immediate, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import ClassicRejoin, ClassicResync
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.uuids import uuid_text


def handle(step: Step, call: GroupCall, request: ClassicRequest) -> Result:
    """Answers a request of the classic protocol in a group that has members."""
    match request:
        case m.HeartbeatRequest():
            return heartbeat(step, request)
        case m.SyncGroupRequest():
            return sync(step, request)
        case m.JoinGroupRequest():
            return join(step, call, request)
        case m.LeaveGroupRequest():
            return leave(step, request)


def join(step: Step, call: GroupCall, request: m.JoinGroupRequest) -> Result:
    """Answers JoinGroup: the member takes part in the group's reconciliation."""
    classic_join.check_session_timeout(step.settings, request)
    try:
        return _join_members(step, call, request)
    except KafkaError as error:
        # Unlike the response of a classic group, this refusal does not name the member.
        return Immediate(m.JoinGroupResponse(error_code=error.code, protocol_name=None))


def _join_members(step: Step, call: GroupCall, request: m.JoinGroupRequest) -> Result:
    _check_join(step.group, step.settings, request)
    member_id = request.member_id or _member_id_of(call.fresh_id)
    needs_id = not request.member_id and request.group_instance_id is None
    if needs_id and call.version >= classic_join.FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
        return Immediate(classic_join.require_member_id(member_id))
    known = _find_or_replace(step, request, member_id)
    return _take_part(step, call, request, known, known or ConsumerMember(member_id))


def _member_id_of(fresh_id: str) -> str:
    """The member's id. Members of consumer groups have plain ids: the 22 characters of a UUID."""
    try:
        drawn = bytes.fromhex(fresh_id.replace("-", ""))
    except ValueError:
        return fresh_id
    return uuid_text(drawn)


def _check_join(group: ConsumerGroup, settings: Settings, request: m.JoinGroupRequest) -> None:
    if settings.group_consumer_migration_policy == "disabled":
        raise errors.InconsistentGroupProtocol
    check_size(group, settings.group_consumer_max_size, request.member_id, request.group_instance_id)
    offered = {protocol.name for protocol in request.protocols}
    for member in group.members.values():
        if member.classic is not None:
            offered &= {name for name, _ in member.classic.protocols}
    if request.protocol_type != PROTOCOL_TYPE or not offered:
        raise errors.InconsistentGroupProtocol


def _find_or_replace(step: Step, request: m.JoinGroupRequest, member_id: str) -> ConsumerMember | None:
    """The member; None for a new one. A static member takes over its instance id from any other member."""
    if request.group_instance_id is not None and request.member_id:
        return require_member(step.group, member_id, request.group_instance_id)
    holder = step.group.static_member(request.group_instance_id)
    known: ConsumerMember | None = step.group.members.get(member_id)
    return known if holder is None else step.replace_member(holder, member_id)


def _take_part(
    step: Step, call: GroupCall, request: m.JoinGroupRequest, known: ConsumerMember | None, member: ConsumerMember
) -> Result:
    classic = ClassicMetadata(request.session_timeout_ms, classic_join.protocols_of(request))
    try:
        subscription = read_subscription(classic)
    except MalformedMessage as error:
        raise errors.InconsistentGroupProtocol from error
    updated = replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=classic_join.rebalance_timeout_ms(request),
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        client_id=call.client_id,
        client_host=call.client_host,
        classic=classic,
    )
    change = follow_subscription(step, call, known, updated)
    reported = _owned(subscription, step.topics)
    if _replaces_last(step, request.group_instance_id):
        # The classic group will replace the target, so no member reconciles with it.
        is_stale = change.must_bump or step.is_outdated() or step.is_behind
        if not is_stale:
            updated = step.reconcile(updated.member_id, has_changed_subscription=change.has_changed, reported=reported)
        return downgrade(step, (), _joined(updated, classic), must_rebalance=is_stale)
    joined = step.bring_on(
        updated.member_id, must_bump=change.must_bump, has_changed_subscription=change.has_changed, reported=reported
    )
    step.arm(
        Disarm(ClassicRejoin(request.group_id, joined.member_id)),
        step.session_timer(request.group_id, joined, step.settings),
        Arm(ClassicResync(request.group_id, joined.member_id), joined.rebalance_timeout_ms),
    )
    return step.result(_joined(joined, classic))


def _replaces_last(step: Step, instance_id: str | None) -> bool:
    """Whether a classic static member replaced the last member that used the consumer protocol."""
    holder = step.logged.static_member(instance_id)
    return holder is not None and holder.classic is None and must_downgrade(step, ())


def _joined(member: ConsumerMember, classic: ClassicMetadata) -> m.JoinGroupResponse:
    return m.JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=classic.protocols[0][0],
        member_id=member.member_id,
    )


def _owned(subscription: ConsumerProtocolSubscription, topics: TopicsImage) -> dict[bytes, set[int]]:
    return {
        topics.topics[topic.topic].topic_id: set(topic.partitions)
        for topic in subscription.owned_partitions
        if topic.topic in topics.topics
    }


# --- staying in


def sync(step: Step, request: m.SyncGroupRequest) -> Result:
    """Replies with a member's assignment at once: the coordinator assigns, not a leader."""
    member, classic = _classic_member(step.group, request)
    protocol_name, group_id = classic.protocols[0][0], request.group_id
    check_protocol(request, PROTOCOL_TYPE, protocol_name)
    if step.group.assignment_epoch > member.member_epoch and member.state != UNREVOKED_PARTITIONS:
        rejoin = Arm(ClassicRejoin(group_id, member.member_id), member.rebalance_timeout_ms, keeps_earlier=True)
        return Immediate(m.SyncGroupResponse(error_code=errors.RebalanceInProgress.code), timers=(rejoin,))
    return Result(
        m.SyncGroupResponse(
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol_name,
            assignment=encode_target({one: list(some) for one, some in member.assigned.items()}, step.topics, classic),
        ),
        timers=(Disarm(ClassicResync(group_id, member.member_id)), step.session_timer(group_id, member, step.settings)),
    )


def heartbeat(step: Step, request: m.HeartbeatRequest) -> Result:
    """Renews the session; replies REBALANCE_IN_PROGRESS when the member must revoke partitions or can get new ones."""
    member, _ = _classic_member(step.group, request)
    step.arm_session(member)
    may_be_outdated = step.is_behind or step.soft.checked_version != step.topics.version
    if may_be_outdated and all(one.classic is not None for one in step.group.members.values()):
        # All members are classic: no consumer heartbeat would notice.
        step.refresh(must_bump=False)
        step.update_target()
    must_rejoin = (
        member.member_epoch < step.group.assignment_epoch
        or member.state == UNREVOKED_PARTITIONS
        or (member.state == UNRELEASED_PARTITIONS and not _waits_for_others(step.group, member))
    )
    if must_rejoin:
        rejoin = ClassicRejoin(request.group_id, member.member_id)
        step.arm(Arm(rejoin, member.rebalance_timeout_ms, keeps_earlier=True))
    return step.result(m.HeartbeatResponse(error_code=errors.RebalanceInProgress.code if must_rejoin else errors.NONE))


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        partition not in member.assigned.get(topic_id, {}) and partition in group.owner_by_partition.get(topic_id, {})
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _classic_member(
    group: ConsumerGroup, request: m.HeartbeatRequest | m.SyncGroupRequest
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = require_member(group, request.member_id, request.group_instance_id)
    if member.classic is None or member.member_epoch == LEFT_STATICALLY_EPOCH:
        raise errors.UnknownMemberId
    if request.generation_id != member.member_epoch:
        raise errors.IllegalGeneration
    return member, member.classic


# --- leaving


def leave(step: Step, request: m.LeaveGroupRequest) -> Result:
    """Removes members of either protocol, each with its own outcome."""
    leaving: dict[str, None] = {}
    responses = []
    for identity in request.members:
        error_code = errors.NONE
        try:
            leaving[_leaving_id(step.group, identity)] = None
        except KafkaError as error:
            error_code = error.code
        responses.append(m.MemberResponse(identity.member_id, identity.group_instance_id, error_code))
    response = m.LeaveGroupResponse(members=responses)
    if not leaving:
        return Result(response)
    return remove_or_downgrade(step, list(leaving), response)


def _leaving_id(group: ConsumerGroup, identity: m.MemberIdentity) -> str:
    """The member that leaves; an instance id alone names a static member."""
    holder = group.static_member(identity.group_instance_id)
    member_id = holder.member_id if holder is not None and not identity.member_id else identity.member_id
    return require_member(group, member_id, identity.group_instance_id).member_id
