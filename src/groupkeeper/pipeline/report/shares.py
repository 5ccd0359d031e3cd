"""Share groups in the report: their progress is in tables.SHARE_OFFSETS, not in tables.LAG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupkeeper.pipeline.report.model import Key, Partition, by_group
from groupkeeper.pipeline.report.opened import Opened
from groupkeeper.pipeline.tables import SHARE_OFFSETS
from groupkeeper.rules import words
from groupkeeper.rules.status import Status

Share = Sequence[Mapping[str, Any]]
"""The rows of a share group."""
_COLUMNS = (
    "cluster", "group_id", "topic", "partition", "start_offset", "log_end_offset", "lag", "rejected", "to_redeliver",
    "write_time",
)  # fmt: skip


def read_shares(opened: Opened) -> dict[Key, Share]:
    """The rows of share groups, by cluster and group."""
    return dict(by_group(opened.table(SHARE_OFFSETS, _COLUMNS).to_pylist()))


def sums(share: Share) -> dict[str, Any]:
    """The columns that other groups have from tables.LAG, without the time lag, which is not measured."""
    known = [row["lag"] for row in share if row["lag"] is not None]
    return {"lag_sum": sum(known) if known else None, "lag_count": len(known), "cluster_count": len(share)}


def status_row(share: Share) -> dict[str, Any]:
    """`status` and `rule` as in tables.STATUS."""
    if all(row["lag"] == 0 for row in share):
        return {"status": Status.OK, "rule": "nothing to read"}
    return {"status": Status.UNKNOWN, "rule": "; ".join(_parts(share))}


def _parts(share: Share) -> Iterator[str]:
    if left := sum(row["lag"] or 0 for row in share):
        yield f"{words.counted(left, 'record')} to read, which wait for a time that is not measured for share groups"
    if again := sum(row["to_redeliver"] or 0 for row in share):
        yield f"{words.counted(again, 'record')} will be delivered again"
    if rejected := sum(row["rejected"] or 0 for row in share):
        yield f"{words.counted(rejected, 'record')} rejected, or delivered too often"
    if unread := sum(row["lag"] is None for row in share):
        yield f"no member has read {words.counted(unread, 'partition')}"


def partitions(share: Share) -> list[Partition]:
    """The partitions for the group's section, those with the most to read first."""
    found = [
        Partition(
            row["topic"] or "", row["partition"] or 0, Status.OK if row["lag"] == 0 else Status.UNKNOWN,
            row["start_offset"], row["log_end_offset"], row["lag"], None, None, None, None, None, row["write_time"],
            "no member has read it" if row["lag"] is None else "",
        )
        for row in share
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
