"""One group's failure in an answer that describes several."""

from __future__ import annotations

from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import consumer_group_describe_response, describe_groups_response


def describe_failure(
    group_id: str, error: KafkaError, state: GroupState | None = None
) -> describe_groups_response.DescribedGroup:
    """One group's failure in DescribeGroups; the message is for version 6, where a group that is not found has one."""
    return describe_groups_response.DescribedGroup(
        error_code=error.code,
        error_message=error.message if state is GroupState.DEAD else None,
        group_id=group_id,
        group_state="" if state is None else state.value,
    )


def consumer_describe_failure(group_id: str, error: KafkaError) -> consumer_group_describe_response.DescribedGroup:
    """One group's failure in ConsumerGroupDescribe."""
    message = error.message if error.message != error.text else None
    return consumer_group_describe_response.DescribedGroup(
        error_code=error.code, error_message=message, group_id=group_id
    )
