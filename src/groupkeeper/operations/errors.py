"""Why an operation is refused before anything is changed. What brokers and the client say keeps its own classes."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.client.errors import ClientError


class OperationRefused(ClientError):
    """The operation would not do what was asked for."""


class BadTopicArgument(OperationRefused):
    """Not ``topic`` and not ``topic:0,1,2``."""


class PartitionsMissing(OperationRefused):
    """Partitions that don't exist, in the order asked for."""

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        names = ",".join(map(str, partitions))
        super().__init__(f'The partitions "{names}" do not exist')
        self.partitions = partitions


class PartitionsLeaderless(OperationRefused):
    """Partitions without a leader, in the order asked for."""

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        names = ",".join(map(str, partitions))
        super().__init__(f'The partitions "{names}" have no leader')
        self.partitions = partitions


class NothingCommitted(OperationRefused):
    """There is no committed offset to move on from."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Cannot shift offset for partition {partition} since there is no current committed offset")
        self.partition = partition


class GroupIsActive(OperationRefused):
    """The group has members, which would go on from where they are."""

    def __init__(self, group_id: str, state: GroupState) -> None:
        super().__init__(
            f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {state}."
        )
        self.group_id = group_id
        self.state = state


class NoPlan(OperationRefused):
    """The file has no line for the group. ``path`` "": the text is Kafka's, which doesn't name the file."""

    def __init__(self, group_id: str, path: str = "") -> None:
        ours = f"{path} has no line for group {group_id}"
        super().__init__(ours if path else f"No reset plan for group {group_id} found")
        self.group_id = group_id


class NothingToDelete(OperationRefused):
    """No offset is committed for the topic or partition."""
