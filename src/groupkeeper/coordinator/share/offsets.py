"""Share-partitions of a group outside its heartbeats: altering, deleting, and the share coordinator's results."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from groupkeeper.coordinator.kernel.group import GroupState
from groupkeeper.coordinator.kernel.result import PARKED, GroupCall, Record, Released, Result, Work
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.soft import GroupChange
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.share import records
from groupkeeper.coordinator.share.group import (
    PartitionsByTopic,
    PartitionStates,
    ShareGroup,
    TopicPartitions,
    add_partitions,
    partitions_in,
    remove_partitions,
)
from groupkeeper.coordinator.share.step import ShareStep
from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares, ShareErrors, ShareWork
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.views import remove_groups
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import (
    CoordinatorLoadInProgress,
    InvalidGroupId,
    InvalidRequest,
    KafkaError,
    NonEmptyGroup,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.primitives import ZERO_UUID, Message

_NOTHING_TO_DELETE = "There is no offset information to delete."
_GONE = "<UNKNOWN>"


# --- altering


def alter(
    state: StateView, settings: Settings, call: GroupCall, request: m.AlterShareGroupOffsetsRequest, now_ms: int
) -> Result:
    """Initializes share-partitions of an empty group again; creates the group if it does not exist.

    Raises `InvalidGroupId`, `GroupIdNotFound` for a group of another type, `NonEmptyGroup`.
    """
    group = _empty_group(state, request.group_id, is_created=True)
    offsets: dict[bytes, dict[int, int]] = {}
    for topic in request.topics:
        shape = state.topics.topics.get(topic.topic_name)
        if shape is None:
            continue
        wanted = {
            one.partition_index: one.start_offset
            for one in topic.partitions
            if one.partition_index < shape.partition_count
        }
        if wanted:
            offsets[shape.topic_id] = wanted
    if not offsets:
        return Result(_altered(state.topics, request, {}, {}))
    step = ShareStep(group, settings, state.topics, now_ms)
    work = step.initialize(offsets)
    return replace(step.result(PARKED), lookups=(replace(work, call=call),))


def _altered(
    topics: TopicsImage,
    request: m.AlterShareGroupOffsetsRequest,
    offsets: Mapping[bytes, Mapping[int, int]],
    errors: ShareErrors,
) -> m.AlterShareGroupOffsetsResponse:
    """The response after `offsets` were set, except for share-partitions in `errors`. A topic that was deleted
    meanwhile is unknown, even if a new topic has the same name.
    """
    responses = []
    for topic in request.topics:
        shape = topics.topics.get(topic.topic_name)
        partitions = []
        for one in topic.partitions:
            error: KafkaError | None = UnknownTopicOrPartition()
            if shape is not None and one.partition_index in offsets.get(shape.topic_id, ()):
                error = errors.get(SharePartitionKey(request.group_id, shape.topic_id, one.partition_index))
            partitions.append(
                m.AlterShareGroupOffsetsResponsePartition(one.partition_index)
                if error is None
                else m.AlterShareGroupOffsetsResponsePartition(one.partition_index, error.code, error.message)
            )
        topic_id = ZERO_UUID if shape is None else shape.topic_id
        responses.append(m.AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, partitions))
    return m.AlterShareGroupOffsetsResponse(responses=responses)


def _empty_group(state: StateView, group_id: str, *, is_created: bool) -> ShareGroup:
    if not group_id:
        raise InvalidGroupId
    is_new = is_created and group_id not in state.groups
    group = ShareGroup(group_id) if is_new else state.require(group_id, ShareGroup)
    if group.state is not GroupState.EMPTY:
        raise NonEmptyGroup
    return group


def work_due(state: StateView, work: Work) -> tuple[ShareWork, Result]:
    """The part of the work that is still needed, and the result that must be in the log before the work is done.
    Share-partitions that members may have been assigned meanwhile are not deleted.
    """
    if isinstance(work, DeleteShares):
        in_use = {one: topics for one, own in work.partitions.items() if (topics := _in_use(state, one, own))}
        work = replace(work, in_use=in_use)
        return work, Result(records=_records_before_deletion(state, work))
    assert isinstance(work, InitializeShares)
    return work if work.call is not None else _still_missing(state, work), Result()


def work_done(state: StateView, work: Work, errors: ShareErrors) -> Result:
    """The result after the share coordinator has done its work, except for share-partitions in `errors`."""
    if isinstance(work, InitializeShares):
        return _initialized(state, work, errors)
    assert isinstance(work, DeleteShares)
    request = work.call.request
    if isinstance(request, m.DeleteShareGroupOffsetsRequest):
        return _offsets_deleted(state, request, work, errors)
    assert isinstance(request, m.DeleteGroupsRequest)
    return _groups_cleared(state, request, work, errors)


def _in_use(state: StateView, group_id: str, topic_ids: Collection[bytes]) -> frozenset[bytes]:
    """The topics that were initialized again since their deletion was requested; none if the group has no members."""
    group = state.find(group_id, ShareGroup)
    return frozenset(topic_ids).intersection(() if group is None or not group.members else group.has.initialized)


def _still_missing(state: StateView, work: InitializeShares) -> InitializeShares:
    """The initialization that a heartbeat requested, without the share-partitions that were initialized since.
    Otherwise it would replace offsets that were set meanwhile.
    """
    group = state.find(work.group_id, ShareGroup)
    has = PartitionStates() if group is None else group.has
    offsets = {
        topic_id: {one: offset for one, offset in own.items() if one in partitions_in(has.initializing, topic_id)}
        for topic_id, own in work.start_offsets.items()
    }
    return replace(work, start_offsets={topic_id: own for topic_id, own in offsets.items() if own})


def _initialized(state: StateView, work: InitializeShares, errors: ShareErrors) -> Result:
    """Share-partitions were initialized, except for those with an error: these may be requested again.

    They stay marked as initializing, though: an attempt may have been stored without a response, and state that is not
    in the group's record would not be deleted with the group.
    """
    group = state.find(work.group_id, ShareGroup)
    written: tuple[Record, ...] = ()
    soft: tuple[GroupChange, ...] = ()
    if group is not None and group.partitions is not None:
        has = group.partitions
        requested = {topic_id: frozenset(offsets) for topic_id, offsets in work.start_offsets.items()}
        done = {
            topic_id: TopicPartitions(state.topics.name_by_id[topic_id], good)
            for topic_id, partitions in requested.items()
            if topic_id in state.topics.name_by_id
            and (good := _without_errors(work.group_id, topic_id, _expected(has, work, topic_id, partitions), errors))
        }
        initialized = add_partitions(has.initialized, done)
        changed = replace(
            has,
            initializing=remove_partitions(has.initializing, _settled(requested, initialized, work.group_id, errors)),
            initialized=initialized,
        )
        written = _written(group, changed)
        if errors:
            since = {one: ms for one, ms in group.soft.initializing_since.items() if one not in requested}
            soft = (GroupChange(group.group_type, group.group_id, replace(group.soft, initializing_since=since)),)
    if work.call is None:
        return Result(records=written, soft=soft)
    request = work.call.request
    assert isinstance(request, m.AlterShareGroupOffsetsRequest)
    response = _altered(state.topics, request, work.start_offsets, errors)
    return Result(records=written, soft=soft, released=(Released(work.call.call_id, response),))


def _settled(
    requested: Mapping[bytes, frozenset[int]], initialized: PartitionsByTopic, group_id: str, errors: ShareErrors
) -> dict[bytes, frozenset[int]]:
    """The partitions that are no longer being initialized: they are initialized, or can't be."""
    settled = {}
    for topic_id, partitions in requested.items():
        known = partitions_in(initialized, topic_id)
        settled[topic_id] = frozenset(
            one
            for one in partitions
            if one in known or not _may_be_asked_again(errors.get(SharePartitionKey(group_id, topic_id, one)))
        )
    return settled


def _may_be_asked_again(error: KafkaError | None) -> bool:
    return error is not None and not isinstance(error, InvalidRequest | UnknownTopicOrPartition)


def _expected(
    has: PartitionStates, work: InitializeShares, topic_id: bytes, partitions: frozenset[int]
) -> frozenset[int]:
    """The partitions that must still become initialized, without partitions that were deleted meanwhile."""
    if work.call is not None and topic_id not in has.deleting:
        # If two alterations run at once, the first may have failed, which ends the initialization of its partitions.
        return partitions
    return partitions & partitions_in(has.initializing, topic_id)


def _without_errors(group_id: str, topic_id: bytes, partitions: Collection[int], errors: ShareErrors) -> frozenset[int]:
    return frozenset(one for one in partitions if SharePartitionKey(group_id, topic_id, one) not in errors)


# --- deleting


def delete(state: StateView, call: GroupCall, request: m.DeleteShareGroupOffsetsRequest) -> Result:
    """Deletes all share-partitions of topics in an empty group.

    Raises `InvalidGroupId`, `GroupIdNotFound`, `NonEmptyGroup`.
    """
    group = _empty_group(state, request.group_id, is_created=False)
    has = group.has
    partitions: dict[bytes, frozenset[int]] = {}
    for topic in request.topics:
        shape = state.topics.topics.get(topic.topic_name)
        if shape is None:
            continue
        if shape.topic_id in has.initialized or shape.topic_id in has.deleting:
            partitions[shape.topic_id] = frozenset(range(shape.partition_count))
    if not partitions:
        return Result(_deleted(state.topics, request, partitions, {}))
    # Also from those being initialized now, which would be left without state.
    deleting = {**has.deleting, **{topic_id: _name(state.topics, topic_id) for topic_id in partitions}}
    changed = replace(has.without(partitions), deleting=deleting)
    return Result(PARKED, records=_written(group, changed), lookups=(DeleteShares({group.group_id: partitions}, call),))


def _deleted(
    topics: TopicsImage,
    request: m.DeleteShareGroupOffsetsRequest,
    partitions: Mapping[bytes, frozenset[int]],
    errors: Mapping[bytes, KafkaError],
) -> m.DeleteShareGroupOffsetsResponse:
    refused, answered = [], []
    for topic in request.topics:
        shape = topics.topics.get(topic.topic_name)
        if shape is not None and shape.topic_id in partitions:
            error = errors.get(shape.topic_id)
            code, message = (0, None) if error is None else (error.code, error.message)
            answered.append(m.DeleteShareGroupOffsetsResponseTopic(topic.topic_name, shape.topic_id, code, message))
        else:
            error = UnknownTopicOrPartition() if shape is None else UnknownTopicOrPartition(_NOTHING_TO_DELETE)
            refused.append(
                m.DeleteShareGroupOffsetsResponseTopic(
                    topic.topic_name, error_code=error.code, error_message=error.message
                )
            )
    return m.DeleteShareGroupOffsetsResponse(responses=[*answered, *refused])


def _offsets_deleted(
    state: StateView, request: m.DeleteShareGroupOffsetsRequest, work: DeleteShares, errors: ShareErrors
) -> Result:
    """The state of share-partitions was deleted; topics with an error stay marked as deleting."""
    partitions = work.partitions[request.group_id]
    failed: dict[bytes, KafkaError] = {key.topic_id: error for key, error in errors.items()}
    failed |= dict.fromkeys(work.in_use.get(request.group_id, ()), NonEmptyGroup())
    group = state.find(request.group_id, ShareGroup)
    written: tuple[Record, ...] = ()
    if group is not None:
        done = partitions.keys() - failed.keys()
        deleting = {topic_id: name for topic_id, name in group.has.deleting.items() if topic_id not in done}
        written = _written(group, replace(group.has, deleting=deleting))
    response = _deleted(state.topics, request, partitions, failed)
    return Result(records=written, released=(Released(work.call.call_id, response),))


def _groups_cleared(
    state: StateView, request: m.DeleteGroupsRequest, work: DeleteShares, errors: ShareErrors
) -> Result:
    """Deletes groups after the state of their share-partitions was deleted. A group with an error stays, and its
    deletion may be requested again. A group whose offsets other requests alter or delete meanwhile stays too: the state
    of its share-partitions would be orphaned if their work came later or failed.
    """
    codes = {key.group_id: error.code for key, error in errors.items()}
    for group_id, changes in work.changes.items():
        group = state.find(group_id, ShareGroup)
        if group is not None and work.in_use.get(group_id):
            codes[group_id] = NonEmptyGroup.code
        elif group is not None and not group.members and group.partition_changes != changes:
            codes.setdefault(group_id, CoordinatorLoadInProgress.code)
    result = remove_groups(state, request, codes)
    assert isinstance(result.response, Message)
    return replace(result, response=None, released=(Released(work.call.call_id, result.response),))


def _records_before_deletion(state: StateView, work: DeleteShares) -> tuple[Record, ...]:
    """Records which mark share-partitions as no longer initialized. They must be in the log before the state is
    deleted: if the coordinator then ended, or could not write, members would be assigned share-partitions without
    state.

    Usually the request has already written these records. But an earlier alteration can end after a later one has
    unmarked the topic as deleting. Then its share-partitions are initialized; the later alteration initializes them
    again.
    """
    written = []
    for group_id, own in work.to_delete():
        group = state.find(group_id, ShareGroup)
        if group is None:
            continue
        has = group.has
        gone = {
            topic_id: TopicPartitions(name, some)
            for topic_id, (name, partitions) in has.initialized.items()
            if (some := partitions & own.get(topic_id, frozenset()))
        }
        if gone:
            changed = replace(
                has,
                initializing=add_partitions(has.initializing, gone),
                initialized=remove_partitions(has.initialized, {one: some for one, (_, some) in gone.items()}),
            )
            written.append(records.partitions_record(group_id, changed))
    return tuple(written)


def begin_deletion(state: StateView, call: GroupCall, request: m.DeleteGroupsRequest) -> Result | None:
    """The work to do before empty share groups are deleted: deleting the state of their share-partitions. None when no
    group of the request has such state.
    """
    partitions: dict[str, Mapping[bytes, frozenset[int]]] = {}
    changes: dict[str, int] = {}
    written: list[Record] = []
    for group_id in dict.fromkeys(request.groups_names):
        group = state.find(group_id, ShareGroup)
        if group is None or group.state is not GroupState.EMPTY or not group.has.topic_ids:
            continue
        partitions[group_id] = _all_partitions(group.has, state.topics)
        deleting = {topic_id: _name(state.topics, topic_id) for topic_id in group.has.topic_ids}
        change = _written(group, PartitionStates(deleting=deleting))
        written.extend(change)
        changes[group_id] = group.partition_changes + len(change)
    if not partitions:
        return None
    return Result(PARKED, records=tuple(written), lookups=(DeleteShares(partitions, call, changes),))


def _all_partitions(has: PartitionStates, topics: TopicsImage) -> dict[bytes, frozenset[int]]:
    """Every partition that the share coordinator may have state of; it has no state of deleted topics.

    Deleting state that isn't stored does nothing, but remaining state could never be initialized again: its state epoch
    is higher than that of a new group.
    """
    partitions = {}
    for topic_id in sorted(has.topic_ids):
        name = topics.name_by_id.get(topic_id)
        if name is not None:
            partitions[topic_id] = frozenset(range(topics.topics[name].partition_count))
    return partitions


def remove_topics(state: StateView, topic_ids: Collection[bytes]) -> list[Record]:
    """Topics were deleted: their share-partitions are removed from the groups."""
    groups = state.of_kind(ShareGroup)
    return [record for group in groups for record in _written(group, group.has.without(topic_ids))]


def _written(group: ShareGroup, changed: PartitionStates) -> tuple[Record, ...]:
    """The record of a change of the group's share-partitions; none if nothing changes."""
    return (records.partitions_record(group.group_id, changed),) if changed != group.has else ()


def _name(topics: TopicsImage, topic_id: bytes) -> str:
    return topics.name_by_id.get(topic_id, _GONE)
