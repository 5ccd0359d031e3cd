"""The records of streams groups in `__consumer_offsets` (KIP-1071); imported with the first such record."""

from __future__ import annotations

from groupkeeper.protocol.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from groupkeeper.protocol.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from groupkeeper.protocol.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from groupkeeper.protocol.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from groupkeeper.protocol.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.messages.streams_group_topology_key import StreamsGroupTopologyKey
from groupkeeper.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue

StreamsKey = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
"""Every key of a streams group."""

StreamsValue = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)
"""Every value of a streams group."""

STREAMS_CLASSES: dict[int, tuple[type[StreamsKey], type[StreamsValue]]] = {
    StreamsGroupMetadataKey.RECORD_TYPE: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    StreamsGroupMemberMetadataKey.RECORD_TYPE: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    StreamsGroupTargetAssignmentMetadataKey.RECORD_TYPE: (
        StreamsGroupTargetAssignmentMetadataKey,
        StreamsGroupTargetAssignmentMetadataValue,
    ),
    StreamsGroupTargetAssignmentMemberKey.RECORD_TYPE: (
        StreamsGroupTargetAssignmentMemberKey,
        StreamsGroupTargetAssignmentMemberValue,
    ),
    StreamsGroupCurrentMemberAssignmentKey.RECORD_TYPE: (
        StreamsGroupCurrentMemberAssignmentKey,
        StreamsGroupCurrentMemberAssignmentValue,
    ),
    StreamsGroupTopologyKey.RECORD_TYPE: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""Key and value classes by record type."""
