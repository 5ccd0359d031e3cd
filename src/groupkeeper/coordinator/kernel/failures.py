"""One group's failure in an answer that describes several."""

from __future__ import annotations

from groupkeeper.coordinator.kernel.group_state import GroupState
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import consumer_group_describe_response, describe_groups_response

_DEAD = GroupState.DEAD.value


def describe_failure(
    group_id: str, error: KafkaError, *, is_dead: bool = False
) -> describe_groups_response.DescribedGroup:
    """One group's failure in DescribeGroups. `is_dead` is for version 6, where a group that is not found is Dead, and
    has a message.
    """
    return describe_groups_response.DescribedGroup(
        error_code=error.code,
        error_message=error.message if is_dead else None,
        group_id=group_id,
        group_state=_DEAD if is_dead else "",
    )


def consumer_describe_failure(group_id: str, error: KafkaError) -> consumer_group_describe_response.DescribedGroup:
    """One group's failure in ConsumerGroupDescribe."""
    message = error.message if error.message != error.text else None
    return consumer_group_describe_response.DescribedGroup(
        error_code=error.code, error_message=message, group_id=group_id
    )
