"""The records of streams groups in `__consumer_offsets` (KIP-1071); imported with the first such record."""

from __future__ import annotations

from typing import TypeAlias

from groupkeeper.protocol import messages as m

StreamsKey: TypeAlias = (
    m.StreamsGroupMetadataKey
    | m.StreamsGroupMemberMetadataKey
    | m.StreamsGroupTargetAssignmentMetadataKey
    | m.StreamsGroupTargetAssignmentMemberKey
    | m.StreamsGroupCurrentMemberAssignmentKey
    | m.StreamsGroupTopologyKey
)
"""Every key of a streams group."""

StreamsValue: TypeAlias = (
    m.StreamsGroupMetadataValue
    | m.StreamsGroupMemberMetadataValue
    | m.StreamsGroupTargetAssignmentMetadataValue
    | m.StreamsGroupTargetAssignmentMemberValue
    | m.StreamsGroupCurrentMemberAssignmentValue
    | m.StreamsGroupTopologyValue
)
"""Every value of a streams group."""

STREAMS_CLASSES: dict[int, tuple[type[StreamsKey], type[StreamsValue]]] = {
    m.StreamsGroupMetadataKey.RECORD_TYPE: (m.StreamsGroupMetadataKey, m.StreamsGroupMetadataValue),
    m.StreamsGroupMemberMetadataKey.RECORD_TYPE: (m.StreamsGroupMemberMetadataKey, m.StreamsGroupMemberMetadataValue),
    m.StreamsGroupTargetAssignmentMetadataKey.RECORD_TYPE: (
        m.StreamsGroupTargetAssignmentMetadataKey,
        m.StreamsGroupTargetAssignmentMetadataValue,
    ),
    m.StreamsGroupTargetAssignmentMemberKey.RECORD_TYPE: (
        m.StreamsGroupTargetAssignmentMemberKey,
        m.StreamsGroupTargetAssignmentMemberValue,
    ),
    m.StreamsGroupCurrentMemberAssignmentKey.RECORD_TYPE: (
        m.StreamsGroupCurrentMemberAssignmentKey,
        m.StreamsGroupCurrentMemberAssignmentValue,
    ),
    m.StreamsGroupTopologyKey.RECORD_TYPE: (m.StreamsGroupTopologyKey, m.StreamsGroupTopologyValue),
}
"""Key and value classes by record type."""
