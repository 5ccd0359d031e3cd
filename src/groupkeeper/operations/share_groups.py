"""Operate share groups (KIP-932): find them among other groups, and where a reset moves their start offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    GroupState,
    OffsetSpec,
    ShareGroupDescription,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.reset import ToEarliest, ToLatest, ToTime
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError

ShareScenario = ToEarliest | ToLatest | ToTime


class StartOffsets(NamedTuple):
    """The new start offsets, and the partitions without a record from the time on: they get the log end."""

    offsets: Mapping[TopicPartition, int]
    nothing_later: tuple[TopicPartition, ...] = ()


async def new_start_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], scenario: ShareScenario, *, timeout_ms: int | None = None
) -> StartOffsets:
    """Find the start offsets that a scenario means. Raises the first failure of the brokers' answers."""
    wanted = list(dict.fromkeys(partitions))

    async def listed(spec: OffsetSpec, some: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        specs = dict.fromkeys(some, spec)
        answers = (await admin.list_offsets(specs, timeout_ms=timeout_ms)).all() if specs else {}
        return {partition: answer.offset for partition, answer in answers.items()}

    match scenario:
        case ToEarliest():
            return StartOffsets(await listed(OffsetSpec.earliest(), wanted))
        case ToLatest():
            return StartOffsets(await listed(OffsetSpec.latest(), wanted))
        case ToTime(timestamp_ms):
            found = await listed(OffsetSpec(timestamp_ms), wanted)
            later = tuple(partition for partition, offset in found.items() if offset < 0)
            return StartOffsets(found | await listed(OffsetSpec.latest(), later), later)


async def share_groups_among(
    admin: Admin, failed: Mapping[str, Failure], *, timeout_ms: int | None = None
) -> Batch[str, ShareGroupDescription]:
    """The share groups among the groups whose description as consumer groups failed.

    Groups that are no share groups either are in neither, nor is any when the brokers don't have share groups.
    """
    wanted = [group_id for group_id, failure in failed.items() if isinstance(failure, GroupIdNotFound)]
    if not wanted:
        return Batch()
    try:
        described = await admin.describe_share_groups(wanted, timeout_ms=timeout_ms)
    except (KafkaError, ClientError):
        return Batch()
    refused: dict[str, Failure] = {
        group_id: failure
        for group_id, failure in described.failed.items()
        if isinstance(failure, KafkaError) and not isinstance(failure, GroupIdNotFound)
    }
    found = {key: group for key, group in described.done.items() if group.group_state is not GroupState.DEAD}
    return Batch(found, refused)
