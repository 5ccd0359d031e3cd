"""StreamsGroupHeartbeat (88): joining, staying in, and leaving a streams group (KIP-1071)."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.assignors.spec import TaskRole, Tasks
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.classic.record import group_tombstone
from groupkeeper.coordinator.epochs.checks import check_size, known_or_new, require_member, unknown_member
from groupkeeper.coordinator.epochs.group import LEFT_EPOCH
from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams import records
from groupkeeper.coordinator.streams.checks import check_request, read_topology
from groupkeeper.coordinator.streams.description import asks_for_description
from groupkeeper.coordinator.streams.endpoints import endpoints_of
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember, UserEndpoint
from groupkeeper.coordinator.streams.replay import tasks_of
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.coordinator.streams.topology import ConfiguredTopology, StatusCode, TopologyProblem
from groupkeeper.protocol.errors import InvalidRequest
from groupkeeper.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from groupkeeper.protocol.messages import streams_group_heartbeat_response as response_message

_TAGS_TOLD_SINCE = 1
"""Lowest version of StreamsGroupHeartbeat that reports missing tags."""


def heartbeat(
    state: StateView, settings: Settings, call: GroupCall, request: StreamsGroupHeartbeatRequest, now_ms: int
) -> Result:
    """Answers a heartbeat. Raises `InvalidRequest`, `StreamsInvalidTopology`, `GroupIdNotFound`, `UnknownMemberId`,
    `FencedMemberEpoch`, `GroupMaxSizeReached`.
    """
    check_request(request)
    if request.member_epoch < 0:
        return _leave(state, settings, request, now_ms)
    step = _open_group(state, settings, request, now_ms)
    if request.member_epoch == 0:
        check_size(step.group, settings.group_streams_max_size, request.member_id, request.instance_id)
    reported = _reported(request)
    known: StreamsMember | None = step.find_member(
        request.member_id,
        request.instance_id,
        request.member_epoch,
        lambda member: reported is not None and reported <= member.assigned.keys(),
    )
    return _go_on(step, call, request, known, reported)


# --- checks


def _open_group(
    state: StateView, settings: Settings, request: StreamsGroupHeartbeatRequest, now_ms: int
) -> StreamsStep:
    """The group; a new group for a first member. An empty classic group is replaced."""
    group_id = request.group_id
    classic = state.find(group_id, ClassicGroup) if request.member_epoch == 0 else None
    if classic is None or classic.state is not GroupState.EMPTY:
        group = known_or_new(state, StreamsGroup, group_id, request.member_epoch)
        return StreamsStep(group, settings, state.topics, now_ms)
    step = StreamsStep(StreamsGroup(group_id), settings, state.topics, now_ms)
    step.start_with((group_tombstone(group_id),))
    return step


def _check_tasks(configured: ConfiguredTopology, reported: Tasks | None) -> None:
    for task in sorted(reported or ()):
        count = configured.task_counts.get(task.subtopology_id)
        if count is None:
            raise InvalidRequest(f"Subtopology {task.subtopology_id} does not exist in the topology.")
        if not 0 <= task.partition < count:
            raise InvalidRequest(
                f"Task {task.partition} for subtopology {task.subtopology_id} is invalid. Number of tasks for this "
                f"subtopology: {count}"
            )


def _reported(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The member's owned tasks; None when it doesn't report them."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return tasks_of(request.active_tasks, request.standby_tasks, request.warmup_tasks)


# --- staying in


def _go_on(
    step: StreamsStep,
    call: GroupCall,
    request: StreamsGroupHeartbeatRequest,
    known: StreamsMember | None,
    reported: Tasks | None,
) -> Result:
    settings = step.settings
    is_new = step.group.topology is None
    member, has_changed = _update_member(step, call, request, known)
    _take_topology(step, member, request)
    configured = step.configure()
    if configured.problem is None:
        _check_tasks(configured, reported)
    step.refresh(configured, must_bump=has_changed)
    step.delay_first_assignment()
    step.update_target(configured)
    reconciled = step.reconcile(member.member_id, reported)
    step.arm_session(member)
    if configured.problem is not None:
        step.statuses.append(configured.problem)
    _tell_shutdown(step, request)
    _tell_missing_tags(step, member, call.version)
    tells_tasks = request.member_epoch == 0 or member.assigned != reconciled.assigned
    has_moved = (known.endpoint if known else None) != reconciled.endpoint
    moves_tasks = member.assigned != reconciled.assigned and reconciled.endpoint is not None
    endpoint_epoch = step.soft.endpoint_epoch + (has_moved or moves_tasks)
    tells_endpoints = request.endpoint_information_epoch != endpoint_epoch
    # As in Kafka, which counts from the second heartbeat on, the group's creator gets the endpoints once more.
    endpoint_epoch = 0 if is_new else endpoint_epoch
    step.soft = replace(step.soft, endpoint_epoch=endpoint_epoch)
    active, standby, warmup = (
        records.task_ids(reconciled.assigned, role, response_message.TaskIds) if tells_tasks else None
        for role in TaskRole
    )
    return step.result(
        StreamsGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=settings.group_streams_heartbeat_interval_ms,
            task_offset_interval_ms=settings.group_streams_task_offset_interval_ms,
            acceptable_recovery_lag=settings.group_streams_acceptable_recovery_lag,
            status=[response_message.Status(code, detail) for code, detail in step.statuses],
            active_tasks=active,
            standby_tasks=standby,
            warmup_tasks=warmup,
            topology_description_required=asks_for_description(step, call.version),
            endpoint_information_epoch=endpoint_epoch,
            partitions_by_user_endpoint=endpoints_of(step.group, reconciled, step.topics) if tells_endpoints else None,
        )
    )


def _update_member(
    step: StreamsStep, call: GroupCall, request: StreamsGroupHeartbeatRequest, known: StreamsMember | None
) -> tuple[StreamsMember, bool]:
    """The updated member, and whether its change requires a new assignment: a change of a static member's address
    doesn't.
    """
    member = known or StreamsMember(request.member_id)
    timeout_ms, topology, endpoint, tags = (
        request.rebalance_timeout_ms,
        request.topology,
        request.user_endpoint,
        request.client_tags,
    )
    kept_endpoint = member.endpoint if request.member_epoch else None  # a joining member sends all its fields
    updated = replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=UserEndpoint(endpoint.host, endpoint.port) if endpoint is not None else kept_endpoint,
        client_tags=member.client_tags if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        client_id=call.client_id,
        client_host=call.client_host,
    )
    if updated != known:
        step.write(records.member_record(request.group_id, updated))
    if request.instance_id is None:
        return updated, updated != known
    return updated, _what_counts(updated) != _what_counts(member)


def _what_counts(member: StreamsMember) -> tuple[object, ...]:
    """The fields of a member that the assignment depends on."""
    return member.topology_epoch, member.rack_id, member.client_tags, member.process_id


def _take_topology(step: StreamsStep, member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    """The first member sets the topology; the others must have the same. The response's status reports an older
    topology.
    """
    known = step.group.topology
    if known is None:
        if request.topology is None:  # the log has lost the group's topology; a joining member provides one
            raise unknown_member(request.member_id, request.group_id)
        step.write(records.topology_record(request.group_id, read_topology(request.topology)))
        return
    given = request.topology
    if given is not None and given.epoch >= known.epoch and read_topology(given) != known.value:
        raise InvalidRequest("Topology updates are not supported yet.")
    if member.topology_epoch < known.epoch:
        detail = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {known.epoch}."
        )
        step.statuses.append(TopologyProblem(StatusCode.STALE_TOPOLOGY, detail))


def _tell_shutdown(step: StreamsStep, request: StreamsGroupHeartbeatRequest) -> None:
    _note_shutdown(step, request)
    if step.soft.shutdown_member_id is not None:
        detail = (
            f"Streams group member {step.soft.shutdown_member_id} encountered a fatal error and requested a shutdown "
            "for the entire application."
        )
        step.statuses.append(TopologyProblem(StatusCode.SHUTDOWN_APPLICATION, detail))


def _note_shutdown(step: StreamsStep, request: StreamsGroupHeartbeatRequest) -> None:
    if request.shutdown_application and step.soft.shutdown_member_id is None:
        step.soft = replace(step.soft, shutdown_member_id=request.member_id)


def _tell_missing_tags(step: StreamsStep, member: StreamsMember, version: int) -> None:
    has = dict(member.client_tags)
    missing = [tag for tag in step.settings.group_streams_rack_aware_assignment_tags if tag not in has]
    if missing and version >= _TAGS_TOLD_SINCE:
        detail = (
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
            "Configure them via 'client.tag.<tagKey>' in your Streams config."
        )
        step.statuses.append(TopologyProblem(StatusCode.MISSING_CLIENT_TAGS, detail))


# --- leaving


def _leave(state: StateView, settings: Settings, request: StreamsGroupHeartbeatRequest, now_ms: int) -> Result:
    group = state.require(request.group_id, StreamsGroup)
    member = require_member(group, request.member_id, request.instance_id)
    step = StreamsStep(group, settings, state.topics, now_ms)
    _note_shutdown(step, request)
    if request.member_epoch == LEFT_EPOCH:
        step.remove_members((member.member_id,))
    else:
        # Commits with any epoch of its next process are valid.
        assigned = {task: 0 if task.role is TaskRole.ACTIVE else since for task, since in member.assigned.items()}
        step.set_aside(member, assigned)
    return step.result(StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch))
