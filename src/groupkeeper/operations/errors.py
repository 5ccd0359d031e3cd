"""Why an operation is refused before anything is changed. Errors of brokers and the client keep their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from groupkeeper.client.admin.types import (
    GroupState,
    GroupType,
    MemberDescription,
    ShareMemberDescription,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.rules.words import several


class OperationRefused(ClientError):
    """The operation cannot fulfil the request."""


class BadTopicArgument(OperationRefused):
    """The text is neither `topic` nor `topic:0,1,2`."""


class _Partitions(OperationRefused):
    """Partitions that cannot be used, in the requested order."""

    why: ClassVar[str]

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        super().__init__(f'The partitions "{",".join(map(str, partitions))}" {self.why}')


class PartitionsMissing(_Partitions):
    """Partitions that don't exist."""

    why = "do not exist"


class PartitionsLeaderless(_Partitions):
    """Partitions without a leader."""

    why = "have no leader"


class SeveralCopies(OperationRefused):
    """A topic of another cluster may have several copies here."""

    def __init__(self, topic: str, names: Sequence[str]) -> None:
        super().__init__(
            f"Topic {topic} of the other cluster may be {' or '.join(names)} here: name the prefix (--topic-prefix, "
            "'' for the same name)"
        )


class StateElsewhere(OperationRefused):
    """An application of Kafka Streams would go on without its state."""

    def __init__(self, topic: str, name: str, *, is_there: bool) -> None:
        lacks = "has another number of partitions" if is_there else "is not there"
        super().__init__(
            f"Kafka Streams keeps state in the topic {topic}, and its copy {name} {lacks}: the application would "
            "continue after records whose effects are not in its state. Copy its internal topics first, or name the "
            "topics whose offsets to clone anyway (--topic)"
        )


class NothingCommitted(OperationRefused):
    """No committed offset exists that could be shifted."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(f"Cannot shift offset for partition {tp} since there is no current committed offset")


class GroupIsActive(OperationRefused):
    """The group has members, which would continue from their own positions.

    `members`: the members to name in the text; without them, the text is Kafka's.
    """

    def __init__(self, group_id: str, state: GroupState, members: Sequence[MemberDescription] = ()) -> None:
        kafkas = (
            f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {state}."
        )
        super().__init__(f"the group is active ({state}), held by {named(members)}" if members else kafkas)
        self.group_id = group_id
        self.state = state


TOOLS = {GroupType.SHARE: "kafka-share-groups", GroupType.STREAMS: "kafka-streams-groups"}
"""The official tools for groups whose offsets are not committed by consumers."""


class NotOfConsumers(OperationRefused):
    """The group is a share group: no commit changes its start offsets; with `deletes`: one of this type to delete."""

    def __init__(self, *, deletes: GroupType | None = None) -> None:
        tool = TOOLS[deletes or GroupType.SHARE]
        super().__init__(
            f"a share group has start offsets instead of committed ones, which {tool} shows, sets and deletes "
            "(--describe, --reset-offsets, --delete-offsets)"
            if deletes is None
            else f"a {deletes.lower()} group is deleted by {tool} (--delete)"
        )


class NoPlan(OperationRefused):
    """The file has no line for the group."""

    def __init__(self, group_id: str, path: str) -> None:
        super().__init__(f"{path} has no line for group {group_id}")


class NothingToDelete(OperationRefused):
    """No offset is committed for the topic or partition."""


class StalePlan(OperationRefused):
    """The cluster has changed since the plan was made. `is_outside`: a planned offset is outside of the log now."""

    def __init__(self, text: str, *, is_outside: bool = False) -> None:
        super().__init__(text)
        self.is_outside = is_outside


class WrongCluster(OperationRefused):
    """The plan is for another cluster."""


class NoSuchTime(OperationRefused):
    """No record has the wanted time or a later one, and the policy is to fail then."""


class TimeUnknown(OperationRefused):
    """The time of an offset is unknown: no record has it, or the record could not be read."""


class PartitionsDiffer(OperationRefused):
    """A topic has another number of partitions in another cluster: its records may lie in other partitions there."""

    def __init__(self, topic: str, here: int, there: int) -> None:
        super().__init__(
            f"the topic has {here} partitions in the source and {there} in the target: if records keep their "
            f"partitions nevertheless, name these partitions with --topic '{topic}:0,1,...'"
        )


class OutOfRange(OperationRefused):
    """The log doesn't hold the wanted offset, and the policy is to fail then."""


class NotAsCommitted(OperationRefused):
    """The committed offset isn't the one just committed: another client commits too."""


_NAMED_MEMBERS = 5


def named(members: Sequence[MemberDescription | ShareMemberDescription]) -> str:
    """Members with their hosts, the first few of them."""
    return several([f"{member.client_id or member.member_id} on {member.host}" for member in members], _NAMED_MEMBERS)
