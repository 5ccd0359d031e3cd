"""ConsumerGroupHeartbeat (68): joining, staying in, and leaving a consumer group (KIP-848)."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.assignors import ASSIGNORS
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.classic.record import group_tombstone
from groupkeeper.coordinator.consumer.conversion import remove_or_downgrade, upgrade
from groupkeeper.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.consumer.reconcile import ReportedPartitions
from groupkeeper.coordinator.consumer.regex import follow_subscription
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.epochs.checks import check_size, check_texts, known_or_new, require_member
from groupkeeper.coordinator.epochs.group import LEFT_EPOCH, LEFT_STATICALLY_EPOCH
from groupkeeper.coordinator.epochs.log import by_topic
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import InvalidRequest, UnsupportedAssignor
from groupkeeper.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages import consumer_group_heartbeat_response as response_message

_FIRST_VERSION_WITH_OWN_MEMBER_ID = 1


def heartbeat(
    state: StateView, settings: Settings, call: GroupCall, request: ConsumerGroupHeartbeatRequest, now_ms: int
) -> Result:
    """Answers a heartbeat. Raises an error for an invalid request, member, epoch or regular expression."""
    _check_request(call, request, settings)
    if request.member_epoch < 0:
        return _leave(state, settings, request, now_ms)
    step = _open_group(state, settings, request, now_ms)
    check_size(step.group, settings.group_consumer_max_size, request.member_id, request.instance_id)
    member_id = request.member_id or call.fresh_id
    known: ConsumerMember | None = step.find_member(
        member_id, request.instance_id, request.member_epoch, lambda member: _is_within(_reported(request), member)
    )
    return _go_on(step, call, request, known or ConsumerMember(member_id), known)


# --- checks


def _check_request(call: GroupCall, request: ConsumerGroupHeartbeatRequest, settings: Settings) -> None:
    """Raises `InvalidRequest` or `UnsupportedAssignor` for a request that is invalid whatever the group's state."""
    epoch = request.member_epoch
    if not request.member_id and (call.version >= _FIRST_VERSION_WITH_OWN_MEMBER_ID or epoch != 0):
        raise InvalidRequest("MemberId can't be empty.")
    check_texts(GroupId=request.group_id, InstanceId=request.instance_id, RackId=request.rack_id)
    if epoch == 0:
        _check_join(request)
    elif epoch == LEFT_STATICALLY_EPOCH and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEFT_STATICALLY_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in settings.group_consumer_assignors:
        # In the order of ASSIGNORS: Apache Kafka does not use the order of the setting.
        supported = ", ".join(name for name in ASSIGNORS if name in settings.group_consumer_assignors)
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _is_within(reported: ReportedPartitions | None, member: ConsumerMember) -> bool:
    """Whether a member is known to have no other partitions than it is assigned."""
    if reported is None:
        return False
    assigned = member.assigned
    return all(topic_id in assigned and assigned[topic_id].keys() >= set(some) for topic_id, some in reported.items())


def _reported(request: ConsumerGroupHeartbeatRequest) -> ReportedPartitions | None:
    if request.topic_partitions is None:
        return None
    reported: dict[bytes, set[int]] = {}
    for topic in request.topic_partitions:
        reported.setdefault(topic.topic_id, set()).update(topic.partitions)
    return reported


def _open_group(state: StateView, settings: Settings, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Step:
    """The group; a new group for a first member. An empty classic group is replaced."""
    group_id = request.group_id
    classic = state.find(group_id, ClassicGroup) if request.member_epoch == 0 else None
    if classic is None:
        group = known_or_new(state, ConsumerGroup, group_id, request.member_epoch)
        return Step(group, settings, state.topics, now_ms)
    if classic.state is not GroupState.EMPTY:
        return upgrade(classic, settings, state.topics, now_ms)
    step = Step(ConsumerGroup(group_id), settings, state.topics, now_ms)
    step.start_with((group_tombstone(group_id),))
    return step


# --- staying in


def _go_on(
    step: Step,
    call: GroupCall,
    request: ConsumerGroupHeartbeatRequest,
    member: ConsumerMember,
    known: ConsumerMember | None,
) -> Result:
    updated = _updated_member(member, call, request)
    change = follow_subscription(step, call, known, updated)
    reconciled = step.bring_on(
        updated.member_id,
        must_bump=change.must_bump,
        has_changed_subscription=change.has_changed,
        reported=_reported(request),
    )
    step.arm_session(reconciled)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    has_assignment = request.member_epoch == 0 or is_full or _partitions(member) != _partitions(reconciled)
    return step.result(
        ConsumerGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=step.settings.group_consumer_heartbeat_interval_ms,
            assignment=response_message.Assignment(by_topic(reconciled.assigned, response_message.TopicPartitions))
            if has_assignment
            else None,
        )
    )


def _updated_member(member: ConsumerMember, call: GroupCall, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    names = request.subscribed_topic_names
    timeout_ms = request.rebalance_timeout_ms
    regex = request.subscribed_topic_regex
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else tuple(sorted(set(names))),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=call.client_id,
        client_host=call.client_host,
        classic=None,
    )


def _partitions(member: ConsumerMember) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(some) for topic_id, some in member.assigned.items()}


# --- leaving


def _leave(state: StateView, settings: Settings, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Result:
    group = state.require(request.group_id, ConsumerGroup)
    member = require_member(group, request.member_id, request.instance_id)
    step = Step(group, settings, state.topics, now_ms)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEFT_EPOCH:
        return remove_or_downgrade(step, (member.member_id,), response)
    # The member may come back under another member id. Commits with any epoch of its next process are valid, so the
    # epochs of its partitions start over.
    step.set_aside(member, {topic_id: dict.fromkeys(some, 0) for topic_id, some in member.assigned.items()})
    return step.result(response)
