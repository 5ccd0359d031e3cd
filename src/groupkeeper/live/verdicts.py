"""The groups of a snapshot by ``groupkeeper.rules.status``: the facts that polls give it, and what it answers.

Polls see offsets, not commits: whether a group commits the same offset again, or was further before, is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.model import GroupView
from groupkeeper.operations.lag import LagStatus, PartitionLag
from groupkeeper.rules.status import (
    RANKS,
    Facts,
    Status,
    are_well,
    group_status,
    not_judged,
    partition_status,
    reason,
    stands_ms,
)


class Judged(NamedTuple):
    """``still_ms``: how long the commits have stood still at least, None: not known. ``bad``: the partitions that need
    someone, with their statuses.
    """

    status: Status
    still_ms: int | None
    bad: Sequence[tuple[TopicPartition, Status]]


def judge_status(group: GroupView, now_ms: int) -> Judged:
    """The status of a group at that time."""
    still_ms = _still_ms(group, now_ms)
    worst = Status.UNKNOWN if group.problems and group.lag.lag is None else Status.OK
    bad = []
    if not _is_well(group, still_ms):
        for row, _, status in _of_partitions(group, still_ms, now_ms):
            if RANKS[status] > RANKS[worst]:
                worst = status
            if row is not None and RANKS[status] >= RANKS[Status.STALLED]:
                bad.append((TopicPartition(row.topic, row.partition), status))
    return Judged(group_status(worst, group.members, group.rebalances_lately), still_ms, bad)


def partition_statuses(group: GroupView, now_ms: int) -> dict[TopicPartition, tuple[Status, str]]:
    """The status of each partition with something to tell, and why."""
    still_ms = _still_ms(group, now_ms)
    return {
        TopicPartition(row.topic, row.partition): (status, reason(facts, status))
        for row, facts, status in _of_partitions(group, still_ms, now_ms)
        if row is not None
    }


def worst_partition(
    group: GroupView, status: Status, statuses: Mapping[TopicPartition, tuple[Status, str]]
) -> tuple[TopicPartition, str] | None:
    """The partition that a group has its status from, and why; None: it has it from none. ``statuses``: of its
    partitions.
    """
    found = [each for each in statuses.items() if each[1][0] is status]
    waits = {TopicPartition(row.topic, row.partition): wait for row, wait in zip(group.rows, group.waits, strict=True)}
    found.sort(key=lambda each: waits[each[0]].lag_ms or 0)
    return (found[-1][0], found[-1][1][1]) if found else None


def since_ms(group: GroupView, place: TopicPartition, now_ms: int) -> int | None:
    """Since when a partition has been as its status says; None: not known, or the status begins at no time."""
    for row, facts, status in _of_partitions(group, _still_ms(group, now_ms), now_ms):
        if row is not None and place == (row.topic, row.partition):
            stood_ms = stands_ms(facts, status)
            return None if stood_ms is None else now_ms - stood_ms
    return None


def status_row(group: GroupView, now_ms: int, *, is_first_look: bool = False) -> dict[str, str | None]:
    """The status with its reason under the names of ``--output json``. ``is_first_look``: as in ``missing_facts``."""
    status = judge_status(group, now_ms).status
    worst = worst_partition(group, status, partition_statuses(group, now_ms))
    return {
        "group_status": status.value,
        "reason": None if worst is None else f"{worst[0].topic}-{worst[0].partition}: {worst[1]}",
        "not_judged": missing_facts(group, now_ms, is_first_look=is_first_look),
    }


def missing_facts(group: GroupView, now_ms: int, *, is_first_look: bool = False) -> str | None:
    """Which statuses could not be judged, and why, of any partition where a record may wait; None: all could."""
    missing = _missing(group, now_ms, is_first_look=is_first_look)
    return "; ".join(f"{status.value}: {what}" for status, what in missing) or None


def may_be(group: GroupView, now_ms: int) -> str | None:
    """The same in words for people, without what is so for each group that is behind: polls see no commits of the same
    offset, and nobody reads for a group without members.
    """
    left_out = {Status.STALLED} if group.members else {Status.STALLED, Status.ABANDONED}
    missing = [(status, what) for status, what in _missing(group, now_ms) if status not in left_out]
    return "; ".join(f"it may be {status.value}: {what}" for status, what in missing) or None


def _missing(group: GroupView, now_ms: int, *, is_first_look: bool = False) -> list[tuple[Status, str]]:
    still_ms = _still_ms(group, now_ms)
    missing: dict[Status, str] = {}
    for _, facts, _ in _of_partitions(group, still_ms, now_ms):
        if facts.lag and facts.is_waiting is not False:
            missing |= not_judged(facts._replace(still_ms=None) if is_first_look else facts)
    return sorted(missing.items(), key=lambda each: RANKS[each[0]])


def standing(group: GroupView) -> Iterator[int]:
    """Of each partition where a record waits that a member may read: the first poll that found its committed offset."""
    for row, wait in zip(group.rows, group.waits, strict=True):
        if wait.is_waiting and row.topic not in group.unread:
            known = group.stood.get(TopicPartition(row.topic, row.partition))
            if known is not None:
                yield known.since_ms


def _still_ms(group: GroupView, now_ms: int) -> int | None:
    """See ``Judged``."""
    return None if group.progress_ms is None else max(0, now_ms - group.progress_ms)


def _is_well(group: GroupView, still_ms: int | None) -> bool:
    """Whether the sums tell that no partition needs to be judged, as in most groups."""
    lag, wait = group.lag, group.wait
    is_known = (group.rows or not lag.lag) and not lag.is_least and not wait.unknown
    is_read = not lag.lost and not group.unread
    return is_known and is_read and are_well(wait.lag_ms or 0, wait.margin_ms, group.members, still_ms)


def _of_partitions(
    group: GroupView, still_ms: int | None, now_ms: int
) -> Iterator[tuple[PartitionLag | None, Facts, Status]]:
    """Those with something to read, or of which something isn't known."""
    members, unread, gap_ms = group.members, group.unread, group.usual_gap_ms
    is_simple = group.description is not None and getattr(group.description, "is_simple", False)
    if not group.rows and group.lag.lag:  # from the history, which has no partitions
        lag, wait = group.lag, group.wait
        is_waiting = None if wait.lag_ms is None else bool(wait.waiting)
        facts = Facts(0, lag.lag, lag.lost, None, False, is_waiting, wait.lag_ms, wait.margin_ms, still_ms,
                      members=members, idle_ms=still_ms)  # fmt: skip
        yield None, facts, partition_status(facts)
    for row, own in zip(group.rows, group.waits, strict=True):
        is_beyond = row.status is LagStatus.BEYOND_LOG_END
        if row.lag == 0 and not is_beyond:
            continue
        stood = group.stood.get(TopicPartition(row.topic, row.partition))
        facts = Facts(
            None if row.committed is None else row.committed.offset,
            row.lag,
            row.lost,
            row.in_log if row.has_open_start else 0,
            is_beyond,
            None if own.lag_ms is None and not own.is_waiting else own.is_waiting,
            own.lag_ms,
            own.margin_ms,
            still_ms if stood is None else max(0, now_ms - stood.since_ms),
            None,
            None,
            members,
            is_simple,
            row.topic not in unread if members else None,
            still_ms,
            gap_ms,
        )
        yield row, facts, partition_status(facts)
