"""Share groups (KIP-932) among other groups."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    GroupState,
    ShareGroupDescription,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError


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
