"""Committed offsets of many groups at once. A request is about one group: they are pipelined to each coordinator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from groupkeeper.client.admin.coordinators import locating
from groupkeeper.client.admin.offsets import COMMIT_RETRIES, commit_offsets, delete_offsets
from groupkeeper.client.admin.types import Batch, Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import COORDINATOR_RETRIES, Retries, Routed, one_by_one

_GROUPS_PER_CHUNK = 200
"""Groups whose requests share their retries: few tasks, and still several chunks under way at each broker."""

Outcome = Batch[TopicPartition, None]
OfGroup = Callable[[Peer, str, Deadline], Awaitable[Outcome | Failure]]
Tell = Callable[[], None]
"""Is called whenever a group has its answer."""


async def alter_offsets_of_groups(
    cluster: Cluster,
    offsets: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
    tell: Tell | None,
    timeout_ms: int | None,
) -> Batch[str, Outcome]:
    """Admin.alter_offsets_of_groups."""

    async def ask(peer: Peer, group_id: str, deadline: Deadline) -> Outcome | Failure:
        return await commit_offsets(peer, group_id, offsets[group_id], deadline)

    return await _each(cluster, "alterConsumerGroupOffsets", offsets, ask, COMMIT_RETRIES, tell, timeout_ms)


async def delete_offsets_of_groups(
    cluster: Cluster, partitions: Mapping[str, Iterable[TopicPartition]], tell: Tell | None, timeout_ms: int | None
) -> Batch[str, Outcome]:
    """Admin.delete_offsets_of_groups."""
    wanted = {group_id: list(dict.fromkeys(some)) for group_id, some in partitions.items()}

    async def ask(peer: Peer, group_id: str, deadline: Deadline) -> Outcome | Failure:
        return await delete_offsets(peer, group_id, wanted[group_id], deadline)

    return await _each(cluster, "deleteConsumerGroupOffsets", wanted, ask, COORDINATOR_RETRIES, tell, timeout_ms)


async def _each(
    cluster: Cluster,
    name: str,
    group_ids: Iterable[str],
    of_group: OfGroup,
    retries: Retries,
    tell: Tell | None,
    timeout_ms: int | None,
) -> Batch[str, Outcome]:
    deadline = cluster.deadline(name, timeout_ms)

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, Outcome | Failure]:
        async def ask_one(group_id: str) -> Outcome:
            answer = await of_group(peer, group_id, deadline)
            if isinstance(answer, Exception):
                raise answer
            if tell is not None:
                tell()
            return answer

        answers = await one_by_one(keys, ask_one)
        return dict(answers)

    call: Routed[str, Outcome] = Routed(
        cluster, deadline, locating(cluster), ask, chunk=_GROUPS_PER_CHUNK, retries=retries
    )
    return await call.run(list(group_ids))
