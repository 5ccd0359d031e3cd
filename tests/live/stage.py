"""An embedded broker with records of known ages and groups of known lag, and collectors that look at it."""

import asyncio
import time
from collections.abc import Sequence

from tests.times_and_transactions import producer_of, send

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import WantedGroups
from groupkeeper.live.collector import Collector, Schedule
from groupkeeper.live.history import History

HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000
ORDERS = [NOW_MS - 9 * HOUR_MS + number * HOUR_MS for number in range(8)]
"""When the records of the topic orders were written, by their own times: 9 to 2 hours ago."""


def arrange(servers: str) -> None:
    """Topics orders (eight records, kept for ten hours) and payments (none); groups that have read some of orders."""

    async def make() -> None:
        async with Admin(servers) as admin:
            kept = {"retention.ms": str(10 * HOUR_MS)}
            topics = [NewTopic("orders", 1, 1, configs=kept), NewTopic("payments", 2, 1)]
            (await admin.create_topics(topics)).all()
            for group_id, offset in {"billing": 3, "audit": 8, "search": 0}.items():
                await commit(admin, group_id, "orders", offset)
            await commit(admin, "billing", "payments", 0)

    asyncio.run(make())
    send(producer_of(servers), "orders", ORDERS)


async def commit(admin: Admin, group_id: str, topic: str, offset: int) -> None:
    tp = TopicPartition(topic, 0)
    (await admin.alter_consumer_group_offsets(group_id, {tp: OffsetAndMetadata(offset)})).all()


def collector(
    servers: str,
    wanted: WantedGroups = WantedGroups(),  # noqa: B008 it is immutable
    history: History | None = None,
    *,
    interval_s: float = 4.0,
    timeout_ms: int = 5000,
    properties: Sequence[tuple[str, str]] = (),
) -> Collector:
    return Collector(
        "prod",
        lambda: Admin(servers, default_timeout_ms=timeout_ms, properties=dict(properties)),
        Schedule(interval_s, wanted),
        Archive(history),
    )
