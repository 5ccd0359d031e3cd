"""Groups of all types, described: to a request for groups of consumers, share and streams groups do not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.streams_types import StreamsGroupDescription
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    MemberDescription,
    ShareGroupDescription,
    ShareMemberDescription,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.streams_groups import as_readers
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError
from groupkeeper.rules.status import Subscription, topics_read

AnyGroup = ConsumerGroupDescription | ShareGroupDescription
AnyMember = MemberDescription | ShareMemberDescription
G = TypeVar("G", ShareGroupDescription, StreamsGroupDescription)


class DescribedGroups(NamedTuple):
    """Groups by id. Members of streams groups have the partitions that their active tasks read; `streams` has these
    groups' full descriptions. A group that a broker before 4.0 calls Dead is in `done` and in `failed`.
    """

    done: dict[str, AnyGroup]
    failed: dict[str, Failure]
    streams: dict[str, StreamsGroupDescription]


async def describe_any(admin: Admin, group_ids: Sequence[str]) -> DescribedGroups:
    """The groups, whatever their types. Raises the failure of the whole cluster."""
    described = await admin.describe_consumer_groups(group_ids)
    failed = described.failed
    shares = await among(failed, partial(admin.describe_share_groups))
    failed = {
        group_id: shares.failed.get(group_id, why) for group_id, why in failed.items() if group_id not in shares.done
    }
    streams = await among(failed, partial(admin.describe_streams_groups))
    failed = {key: streams.failed.get(key, why) for key, why in failed.items() if key not in streams.done}
    for group_id, group in described.done.items():
        if group.group_state is GroupState.DEAD:
            failed[group_id] = GroupIdNotFound(f"Group {group_id} not found.")
    readers = await as_readers(admin, streams.done)
    return DescribedGroups({**described.done, **shares.done, **readers}, failed, streams.done)


def unread_topics(group: AnyGroup | None, topics: frozenset[str]) -> frozenset[str]:
    """The topics that no member reads; none if the subscription of some member is unknown."""
    if not isinstance(group, ConsumerGroupDescription) or group.group_state is not GroupState.STABLE:
        return frozenset()
    read = read_topics(group.members)
    return frozenset() if read is None else topics - read


def read_topics(members: Iterable[MemberDescription]) -> frozenset[str] | None:
    """The topics that members subscribe to or have partitions of, also in their target assignments.

    None: not known for every member (of streams groups it never is), or there are none: members may be about to join
    a group that rebalances.
    """
    return topics_read(
        Subscription(
            member.subscribed_topics,
            bool(member.subscribed_topic_regex),
            [tp.topic for tp in (*member.assignment, *(member.target_assignment or ()))],
        )
        for member in members
    )


async def among(
    failed: Mapping[str, Failure], describe: Callable[[list[str]], Awaitable[Batch[str, G]]]
) -> Batch[str, G]:
    """Describes, as one more type, the groups whose description as another type failed.

    Groups that are not of this type either are missing in the result, as are all if the brokers don't have the type.
    """
    wanted = [group_id for group_id, failure in failed.items() if isinstance(failure, GroupIdNotFound)]
    if not wanted:
        return Batch()
    try:
        described = await describe(wanted)
    except (KafkaError, ClientError):
        return Batch()
    refused: dict[str, Failure] = {
        group_id: failure
        for group_id, failure in described.failed.items()
        if isinstance(failure, KafkaError) and not isinstance(failure, GroupIdNotFound)
    }
    found = {key: group for key, group in described.done.items() if group.group_state is not GroupState.DEAD}
    return Batch(found, refused)
