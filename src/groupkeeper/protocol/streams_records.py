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

_PAIRS: tuple[tuple[type[StreamsKey], type[StreamsValue]], ...] = (
    (m.StreamsGroupMetadataKey, m.StreamsGroupMetadataValue),
    (m.StreamsGroupMemberMetadataKey, m.StreamsGroupMemberMetadataValue),
    (m.StreamsGroupTargetAssignmentMetadataKey, m.StreamsGroupTargetAssignmentMetadataValue),
    (m.StreamsGroupTargetAssignmentMemberKey, m.StreamsGroupTargetAssignmentMemberValue),
    (m.StreamsGroupCurrentMemberAssignmentKey, m.StreamsGroupCurrentMemberAssignmentValue),
    (m.StreamsGroupTopologyKey, m.StreamsGroupTopologyValue),
)
STREAMS_CLASSES = {pair[0].RECORD_TYPE: pair for pair in _PAIRS}
"""Key and value classes by record type."""
