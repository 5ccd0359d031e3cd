"""StreamsGroupTopologyDescriptionUpdate (93): a topology's description, requested from members (KIP-1331). It is stored
in memory only, like that of Kafka's InMemoryTopologyDescriptionPlugin; the log has its topology epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum

from groupkeeper.coordinator.epochs.checks import require_member
from groupkeeper.coordinator.kernel.result import Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView
from groupkeeper.coordinator.streams.group import IN_DOUBT, Asked, StreamsGroup
from groupkeeper.coordinator.streams.records import epoch_record
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.coordinator.streams.topology import StatusCode
from groupkeeper.protocol.errors import InvalidRequest
from groupkeeper.protocol.messages import StreamsGroupTopologyDescriptionUpdateResponse
from groupkeeper.protocol.messages import streams_group_describe_response as described
from groupkeeper.protocol.messages import streams_group_topology_description_update_request as given

_ASKED_SINCE = 1
"""Lowest version of StreamsGroupHeartbeat whose response can request the description."""
_FIRST_WAIT_MS = 30_000
_LONGEST_WAIT_MS = 3_600_000


class _NodeType(IntEnum):
    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class DescriptionStatus(IntEnum):
    """`topology_description_status` in StreamsGroupDescribe, if the description was requested."""

    NOT_STORED = 1
    AVAILABLE = 3


def asks_for_description(step: StreamsStep, version: int) -> bool:
    """Whether the response to a heartbeat requests the description. Requests repeat at increasing intervals."""
    group, topology = step.group, step.group.topology
    assert topology is not None
    if version < _ASKED_SINCE or not step.settings.group_streams_topology_description_plugin_class:
        return False
    is_stale = any(status.code is StatusCode.STALE_TOPOLOGY for status in step.statuses)
    if is_stale or topology.epoch in (group.described_epoch, group.refused_epoch):
        return False
    before, asked = 0, step.soft.asked
    if asked is not None and asked.topology_epoch == topology.epoch:
        if step.now_ms < asked.until_ms:
            return False
        before = asked.before + 1
    wait_ms = min(_FIRST_WAIT_MS << before, _LONGEST_WAIT_MS)
    step.soft = replace(step.soft, asked=Asked(topology.epoch, before, step.now_ms + wait_ms))
    return True


def take_description(
    state: StateView, settings: Settings, request: given.StreamsGroupTopologyDescriptionUpdateRequest, now_ms: int
) -> Result:
    """Stores a description. Raises `InvalidRequest`, `GroupIdNotFound`, `UnknownMemberId`."""
    group = state.require(request.group_id, StreamsGroup)
    require_member(group, request.member_id)
    epoch = -1 if group.topology is None else group.topology.epoch
    if request.topology_epoch != epoch:
        raise InvalidRequest(
            f"Topology epoch {request.topology_epoch} does not match the group's current topology epoch {epoch}."
        )
    description = _read(request.topology_description)
    step = StreamsStep(group, settings, state.topics, now_ms)
    # As in Kafka, one record before the description is stored (IN_DOUBT), and one after (its topology epoch).
    for told in (IN_DOUBT, epoch):
        if told != step.group.described_epoch:
            step.write(epoch_record(replace(step.group, described_epoch=told)))
    step.soft = replace(step.soft, description=(epoch, description), asked=None)
    return step.result(StreamsGroupTopologyDescriptionUpdateResponse())


def describe_topology(group: StreamsGroup, one: described.DescribedGroup) -> None:
    """Sets the description and its status in a described group."""
    kept = group.soft.description
    is_kept = group.topology is not None and group.described_epoch == group.topology.epoch
    one.topology_description_status = DescriptionStatus.NOT_STORED
    if is_kept and kept is not None and kept[0] == group.described_epoch:
        one.topology_description_status = DescriptionStatus.AVAILABLE
        one.topology_description = kept[1]


def _read(description: given.TopologyDescription) -> described.TopologyDescription:
    """Converts a member's description to the form of StreamsGroupDescribe. Raises `InvalidRequest`."""
    subtopologies = [
        described.TopologyDescriptionSubtopology(one.subtopology_id, [_node(node) for node in one.nodes])
        for one in description.subtopologies
    ]
    return described.TopologyDescription(subtopologies, [_global_store(one) for one in description.global_stores])


def _global_store(store: given.TopologyDescriptionGlobalStore) -> described.TopologyDescriptionGlobalStore:
    source, processor = _node(store.source), _node(store.processor)
    if (source.node_type, processor.node_type) != (_NodeType.SOURCE, _NodeType.PROCESSOR):
        raise InvalidRequest("Global store must be composed of a source and a processor node.")
    return described.TopologyDescriptionGlobalStore(source, processor)


def _node(node: given.TopologyDescriptionNode) -> described.TopologyDescriptionNode:
    """Converts a node, with only the fields of its type."""
    kind = node.node_type
    if kind not in tuple(_NodeType):
        raise InvalidRequest(f"Unknown topology node type: {kind}")
    return described.TopologyDescriptionNode(
        node.name,
        kind,
        _once(node.source_topics) if kind == _NodeType.SOURCE else [],
        node.sink_topic if kind == _NodeType.SINK else None,
        _once(node.stores) if kind == _NodeType.PROCESSOR else [],
        _once(node.successors),
    )


def _once(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))
