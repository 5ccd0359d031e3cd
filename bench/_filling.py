"""Makes groups to measure with: no members, an offset in each partition of one topic."""

from __future__ import annotations

import time

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition

PARTITIONS = 8
TOPIC = "bench-admin"
GROUP_ID = "bench-group-{:05}"
_AT_A_TIME = 10_000


async def fill(servers: str, groups: int) -> float:
    """Commit for those of the groups that are not there yet; the seconds that it took."""
    offsets = {TopicPartition(TOPIC, index): OffsetAndMetadata(index) for index in range(PARTITIONS)}
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        known = (await admin.list_groups()).all()
        missing = [group_id for group_id in map(GROUP_ID.format, range(groups)) if group_id not in known]
        started = time.perf_counter()
        for start in range(0, len(missing), _AT_A_TIME):
            some = dict.fromkeys(missing[start : start + _AT_A_TIME], offsets)
            done = (await admin.alter_offsets_of_groups(some, timeout_ms=300_000)).all()
            for batch in done.values():
                batch.all()
        return time.perf_counter() - started
