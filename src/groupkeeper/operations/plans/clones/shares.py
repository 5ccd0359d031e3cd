"""What a share group has done above its start offsets, and where it has none yet: a clone has neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.clones.translating import Found


class Shares(NamedTuple):
    """By share groups of the source. ``lags``: records from the start offset on that are not done, None where the
    brokers do not tell (before 4.2, or as no member has read the partition). ``without``: partitions that the group has
    subscribed to, and has no start offset in.
    """

    lags: Mapping[str, Mapping[TopicPartition, int | None]] = {}
    without: Mapping[str, list[TopicPartition]] = {}

    def done_ahead(self, group_id: str, tp: TopicPartition, start: int, end: int) -> int | None:
        """How many records from the start offset on are done at most, None: not known. ``end`` was read after lags."""
        lag = self.lags.get(group_id, {}).get(tp)
        return None if lag is None else max(0, end - start - lag)


async def look_at_shares(source: Admin, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Shares:
    """Groups that cannot be asked are left out: their start offsets are not known either."""
    listed = await source.list_share_group_offsets(dict.fromkeys(group_ids), timeout_ms=timeout_ms)
    lags: dict[str, dict[TopicPartition, int | None]] = {}
    without: dict[str, list[TopicPartition]] = {}
    for group_id, batch in listed.done.items():
        lags[group_id] = {tp: one.lag for tp, one in batch.done.items() if one is not None}
        without[group_id] = sorted(tp for tp, one in batch.done.items() if one is None)
    return Shares(lags, without)


def delivered_again(found: Found, done: int | None) -> Found:
    """The place, with the records that are done above the start offset: they are read again."""
    if not done:
        return found
    records = "record is" if done == 1 else "records are"
    why = f"{found.why}; {done:,} {records} done after the start offset, and delivered again"
    replays = None if found.replays is None else found.replays + done
    return found._replace(why=why, replays=replays)
