"""The current state of groups and logs, from which plans are made, and with which they are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    FirstRecord,
    GroupState,
    GroupType,
    MemberDescription,
    OffsetAndMetadata,
    OffsetSpec,
    Position,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import GroupIsActive, NotOfConsumers, PartitionsMissing
from groupkeeper.operations.plans.model import PlannedTopic, PlanTrouble
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.operations.selection import of_new_types
from groupkeeper.operations.topics import describe_topics, listed, unreachable
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError
from groupkeeper.rules.words import counted

Committed = Mapping[TopicPartition, OffsetAndMetadata]

MOST_TIMES = 1000
"""How many records to read for their timestamps: each costs the broker a read of its log."""

_BACK = ((1,), (2, 3, 4, 8, 16, 64, 256))
"""The distances before a position at which to look for its last record, one tuple after the other."""

_WRITABLE = range(253_402_300_800_000)
"""Timestamps that can be written as dates: from 1970 to the year 9999."""


class FoundGroup(NamedTuple):
    """A group that exists; without members if it is a streams group."""

    group_id: str
    group_type: GroupType
    group_state: GroupState
    members: tuple[MemberDescription, ...] = ()

    @property
    def refusal(self) -> GroupIsActive:
        """Why it is not changed while it is active; the members are named."""
        return GroupIsActive(self.group_id, self.group_state, self.members)


class FoundGroups(NamedTuple):
    """`described` has groups that exist; `committed` the groups whose committed offsets are known; `failed` the
    others.
    """

    described: dict[str, FoundGroup]
    committed: dict[str, Committed]
    failed: dict[str, Failure]

    def state(self, group_id: str) -> GroupState:
        """The state; a group that doesn't exist is Dead."""
        group = self.described.get(group_id)
        return GroupState.DEAD if group is None else group.group_state

    def refuse_active(self, group_id: str) -> None:
        """Raise GroupIsActive, naming the members."""
        if self.state(group_id) not in INACTIVE:
            raise self.described[group_id].refusal

    @property
    def troubles(self) -> list[PlanTrouble]:
        """The troubles of groups that could not be described."""
        return [PlanTrouble(group_id, None, why) for group_id, why in self.failed.items()]

    @property
    def absent(self) -> tuple[str, ...]:
        """The groups that don't exist; brokers before 4.0 describe such as Dead."""
        return tuple(key for key in self.committed if self.state(key) is GroupState.DEAD and key not in self.failed)

    def notes(self, group_ids: Iterable[str]) -> list[str]:
        """Notes to show before offsets of these groups are committed."""
        return [
            f"{group_id} is a streams group: its offsets are set, but its state stores and internal topics are left "
            "as they are; Apache Kafka's kafka-streams-groups can reset these, too"
            for group_id in group_ids
            if group_id in self.described and self.described[group_id].group_type is GroupType.STREAMS
        ]


class Logs(NamedTuple):
    """Log starts and ends. `failed`: the partitions of which they aren't known, with the reason."""

    topics: Batch[str, TopicDescription]
    log_starts: dict[TopicPartition, int]
    log_ends: dict[TopicPartition, int]
    failed: dict[TopicPartition, Failure]

    def facts(self, topic: str, *, is_whole: bool) -> PlannedTopic | None:
        """The facts about a topic that a plan stores; None: it cannot be described."""
        described = self.topics.done.get(topic)
        if described is None:
            return None
        topic_id = None if described.topic_id is None else described.topic_id.hex()
        return PlannedTopic(topic_id, len(described.partitions) if is_whole else None)

    def facts_of(self, topics: Iterable[str]) -> dict[str, PlannedTopic]:
        """The facts of topics for which single partitions are planned."""
        found = ((topic, self.facts(topic, is_whole=False)) for topic in dict.fromkeys(topics))
        return {topic: facts for topic, facts in found if facts is not None}

    def why_not(self, tp: TopicPartition) -> Failure | None:
        """Why the ends of a partition's log aren't known, None: they are."""
        failure = self.failed.get(tp)
        if failure is None or tp.topic not in self.topics.done or tp in self.existing(tp.topic):
            return failure
        return PartitionsMissing([tp])

    def existing(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, none when it cannot be described."""
        described = self.topics.done.get(topic)
        return [] if described is None else described.topic_partitions


def will_be_made(group_id: str) -> str:
    """The note about a group that doesn't exist and gets offsets."""
    return f"there is no group {group_id}: it is created when the plan is applied with --create"


async def find_groups(admin: Admin, group_ids: Collection[str]) -> FoundGroups:
    """States, members and committed offsets of groups. A group that doesn't exist has no offsets and no failure, a
    share group the failure NotOfConsumers.
    """
    if not group_ids:
        return FoundGroups({}, {}, {})
    described, offsets = await asyncio.gather(
        describe(admin, group_ids), admin.list_consumer_group_offsets(dict.fromkeys(group_ids))
    )
    failed = {group_id: why for group_id, why in described.failed.items() if not isinstance(why, GroupIdNotFound)}
    failed = offsets.failed | failed
    committed: dict[str, Committed] = {}
    for group_id, batch in offsets.done.items():
        committed[group_id] = {tp: offset for tp, offset in batch.done.items() if offset is not None}
        for failure in batch.failed.values():
            failed[group_id] = failure
    return FoundGroups(described.done, committed, failed)


async def describe(admin: Admin, group_ids: Collection[str]) -> Batch[str, FoundGroup]:
    """States and members. A share group fails with NotOfConsumers, one that doesn't exist with GroupIdNotFound."""
    described = await admin.describe_consumer_groups(group_ids)
    done = {key: FoundGroup(key, one.group_type, one.group_state, one.members) for key, one in described.done.items()}
    failed = dict(described.failed)
    unknown = [key for key, why in failed.items() if isinstance(why, GroupIdNotFound)]
    listed = await of_new_types(admin) if unknown else {}
    for group_id in unknown:
        found = listed.get(group_id)
        if found is None:
            continue
        if found.group_type is GroupType.SHARE:
            failed[group_id] = NotOfConsumers()
        else:
            del failed[group_id]
            done[group_id] = FoundGroup(group_id, GroupType.STREAMS, found.group_state or GroupState.UNKNOWN)
    return Batch(done, failed)


async def find_logs(admin: Admin, partitions: Iterable[TopicPartition]) -> Logs:
    """Log starts and ends of partitions, and descriptions of their topics."""
    wanted = list(dict.fromkeys(partitions))
    return await find_ends(admin, wanted, await describe_topics(admin, [tp.topic for tp in wanted]))


async def find_ends(admin: Admin, partitions: Collection[TopicPartition], topics: Batch[str, TopicDescription]) -> Logs:
    """Log starts and ends of partitions whose topics are described already."""
    failed = dict(unreachable(partitions, topics))
    reachable = [tp for tp in partitions if tp not in failed]
    log_starts, log_ends = await asyncio.gather(
        listed(admin, reachable, OffsetSpec.earliest()), listed(admin, reachable, OffsetSpec.latest())
    )
    failed |= log_starts.failed | log_ends.failed
    return Logs(
        topics,
        {tp: answer.offset for tp, answer in log_starts.done.items() if tp not in failed},
        {tp: answer.offset for tp, answer in log_ends.done.items() if tp not in failed},
        failed,
    )


async def record_times(admin: Admin, positions: Collection[Position]) -> tuple[dict[Position, int], list[str]]:
    """Timestamps of records, as far as they can be read: a plan is valid without them. The texts are the reasons why
    others are unknown.
    """
    if not positions:
        return {}, []
    try:
        found = await admin.record_timestamps(positions)
    except (KafkaError, ClientError) as error:
        return {}, [f"the times of records are not known: {error}"]
    times = {
        position: time_ms for position, time_ms in found.done.items() if time_ms is not None and time_ms in _WRITABLE
    }
    return times, times_unknown(found.failed)


async def last_records(admin: Admin, ends: Mapping[Position, int]) -> Batch[Position, FirstRecord | None]:
    """For each position, a record shortly before it, mostly the last one; None: none is near. `ends` has the log's
    start. Right before a position there may be markers of transactions, or records that compaction has removed.
    """
    found: Batch[Position, FirstRecord | None] = Batch(dict.fromkeys(ends))
    for steps in _BACK:
        tried = {
            end: [end._replace(offset=end.offset - step) for step in steps if end.offset - step >= log_start]
            for end, log_start in ends.items()
            if found.done[end] is None and end not in found.failed
        }
        read = await admin.first_records([at for positions in tried.values() for at in positions])
        for end, positions in tried.items():
            failures = [read.failed[at] for at in positions if at in read.failed]
            if failures:
                found.failed[end] = failures[0]
            records = (read.done[at] for at in positions if at in read.done)
            found.done[end] = next((one for one in records if one is not None and one.offset < end.offset), None)
    return Batch({end: one for end, one in found.done.items() if end not in found.failed}, found.failed)


def times_unknown(failed: Mapping[Position, Failure]) -> list[str]:
    """Why the times of records are not known: each reason once."""
    positions_by_reason: dict[str, list[Position]] = {}
    for position, why in failed.items():
        reason = f"{type(why).__name__}: {why}".removesuffix(": ")
        positions_by_reason.setdefault(reason, []).append(position)
    return [
        f"{counted(len(positions), 'record')} without a known time, for example "
        f"{positions[0].topic}-{positions[0].partition} at offset {positions[0].offset}: {reason}"
        for reason, positions in positions_by_reason.items()
    ]
