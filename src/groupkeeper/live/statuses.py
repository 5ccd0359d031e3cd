"""Judges the groups of a snapshot by `groupkeeper.rules.status`, with the facts that polls find.

Polls see offsets, not commits: whether a group commits the same offset again, or was further before, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.model import MOST_REBALANCES, GroupView
from groupkeeper.operations.lag import LagStatus, PartitionLag
from groupkeeper.rules import status as rules
from groupkeeper.rules.progress import Trend, catch_up_ms
from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import SOON_MS, UrgencyFacts


class Judged(NamedTuple):
    """The status of a group. `still_ms`: how long the commits have stood still at least, None: unknown. `bad`: the
    partitions that need attention, with their statuses. `wait_ms`, `stood_ms`: the longest wait among partitions with
    the group's status, and how long that partition's commit has stood; None also if the sums were enough.
    """

    status: Status
    still_ms: int | None
    bad: Sequence[tuple[TopicPartition, Status]]
    wait_ms: int | None = None
    stood_ms: int | None = None


def judge_status(group: GroupView, now_ms: int) -> Judged:
    """The status of a group at that time."""
    still_ms = _still_ms(group, now_ms)
    worst = Status.UNKNOWN if group.problems and group.lag.lag is None else Status.OK
    bad: list[tuple[TopicPartition, Status]] = []
    first: tuple[int, rules.Facts | None] = 0, None
    if not _is_well(group, still_ms):
        for row, facts, status in _of_partitions(group, now_ms):
            if rules.RANKS[status] > rules.RANKS[worst]:
                worst, first = status, (0, None)
            if status is worst and (facts.waits_ms or 0) >= first[0]:
                first = facts.waits_ms or 0, facts
            if row is not None and rules.RANKS[status] >= rules.RANKS[Status.STALLED]:
                bad.append((row.tp, status))
    return Judged(rules.group_status(worst, group.members, group.rebalances_lately), still_ms, bad, first[0],
                  first[1] and first[1].still_ms)  # fmt: skip


def urgency_facts(group: GroupView, judged: Judged) -> UrgencyFacts:
    """Urgency facts from polls, without trends of groups that are ok or unknown. Polls have no rates per partition, so
    records due for removal may still be read in time.
    """
    status, members, lag = judged.status, group.members, group.lag
    if status in (Status.OK, Status.UNKNOWN):
        never = bool(lag.open_starts) and group.committed is None
        return UrgencyFacts(status, members, never_commits=never)
    margin_ms = group.wait.margin_ms
    left_ms = None if margin_ms is None or margin_ms >= SOON_MS else margin_ms
    pairs = () if left_ms is None else zip(group.rows, group.waits, strict=True)
    left_in = next((f"{row.topic}-{row.partition}" for row, wait in pairs if wait.margin_ms == margin_ms), "")
    growth = group.lag_change_per_s if group.trend is Trend.GROWING else None
    return UrgencyFacts(
        status, members, judged.wait_ms, left_ms, left_in, growth, group_catch_up_ms(group), judged.stood_ms,
        partitions=len(group.rows), kind="simple" if _is_simple(group) else "", is_old=group.is_old,
    )  # fmt: skip


def _is_simple(group: GroupView) -> bool:
    return getattr(group.description, "is_simple", False)


def group_catch_up_ms(group: GroupView) -> int | None:
    """The time until the lag is 0 at its current change; None: the lag doesn't shrink, is 0, or is unknown."""
    change, lag = group.lag_change_per_s, group.lag.lag
    return catch_up_ms(lag, change, 0) if lag and change is not None else None


def partition_statuses(group: GroupView, now_ms: int) -> dict[TopicPartition, tuple[Status, str]]:
    """The status, and its reason, of each partition with something to read, or unknown."""
    return {
        row.tp: (status, rules.reason(facts, status))
        for row, facts, status in _of_partitions(group, now_ms)
        if row is not None
    }


def worst_partition(
    group: GroupView, status: Status, statuses: Mapping[TopicPartition, tuple[Status, str]]
) -> tuple[TopicPartition, str] | None:
    """The partition that gives the group its status, and why; None: none does. `statuses`: of its partitions."""
    found = [each for each in statuses.items() if each[1][0] is status]
    waits = {row.tp: wait for row, wait in zip(group.rows, group.waits, strict=True)}
    found.sort(key=lambda each: waits[each[0]].lag_ms or 0)
    return (found[-1][0], found[-1][1][1]) if found else None


def reason_of(group: GroupView, worst: tuple[TopicPartition, str] | None) -> str | None:
    """The reason of a group's status, as a phrase. `worst`: from `worst_partition`."""
    found = [] if worst is None else [f"{worst[0].topic}-{worst[0].partition}: {worst[1]}"]
    lately = group.rebalances_lately
    if lately >= rules.REBALANCES:
        found.append(rules.rebalanced(lately, is_least=lately >= MOST_REBALANCES))
    return "; ".join(found) or None


def since_ms(group: GroupView, tp: TopicPartition, now_ms: int) -> int | None:
    """Since when a partition has had its status, in ms; None: unknown, or the status begins at no certain time."""
    for row, facts, status in _of_partitions(group, now_ms):
        if row is not None and tp == row.tp:
            age_ms = rules.status_age_ms(facts, status)
            return None if age_ms is None else now_ms - age_ms
    return None


def status_row(group: GroupView, now_ms: int, *, is_first_poll: bool = False) -> dict[str, str | None]:
    """The status with its reason under the names of `--output json`. `is_first_poll`: as in `missing_facts`."""
    status = judge_status(group, now_ms).status
    worst = worst_partition(group, status, partition_statuses(group, now_ms))
    return {
        "group_status": status.value,
        "reason": reason_of(group, worst),
        "not_judged": missing_facts(group, now_ms, is_first_poll=is_first_poll),
    }


def missing_facts(group: GroupView, now_ms: int, *, is_first_poll: bool = False) -> str | None:
    """Which statuses could not be judged, and why, for partitions where a record may wait; None: all could."""
    missing = _missing(group, now_ms, is_first_poll=is_first_poll)
    return "; ".join(f"{status.value}: {what}" for status, what in missing) or None


def may_be(group: GroupView, now_ms: int) -> str | None:
    """As `missing_facts`, in words for people, without the facts missing of each lagging group: polls see no
    commits of the same offset, and a group without members has no readers.
    """
    left_out = {Status.STALLED} if group.members else {Status.STALLED, Status.ABANDONED}
    missing = [(status, what) for status, what in _missing(group, now_ms) if status not in left_out]
    return "; ".join(f"it may be {status.value}: {what}" for status, what in missing) or None


def _missing(group: GroupView, now_ms: int, *, is_first_poll: bool = False) -> list[tuple[Status, str]]:
    missing: dict[Status, str] = {}
    for _, facts, _ in _of_partitions(group, now_ms):
        if facts.lag and facts.is_waiting is not False:
            missing |= rules.not_judged(facts._replace(still_ms=None) if is_first_poll else facts)
    return sorted(missing.items(), key=lambda each: rules.RANKS[each[0]])


def standing(group: GroupView) -> Iterator[int]:
    """For each partition where a record waits for a member, the first poll that found its committed offset."""
    for row, wait in zip(group.rows, group.waits, strict=True):
        if wait.is_waiting and row.topic not in group.unread:
            known = group.stood.get(row.tp)
            if known is not None:
                yield known.since_ms


def _still_ms(group: GroupView, now_ms: int) -> int | None:
    """The `still_ms` of `Judged`."""
    return None if group.progress_ms is None else max(0, now_ms - group.progress_ms)


def _is_well(group: GroupView, still_ms: int | None) -> bool:
    """Whether the sums of the group already show that no partition needs to be judged, as in most groups."""
    lag, wait = group.lag, group.wait
    is_known = (group.rows or not lag.lag) and not lag.is_least and not wait.unknown
    is_read = not lag.lost and not group.unread
    return is_known and is_read and rules.are_well(wait.lag_ms or 0, wait.margin_ms, group.members, still_ms)


def _of_partitions(group: GroupView, now_ms: int) -> Iterator[tuple[PartitionLag | None, rules.Facts, Status]]:
    """The facts and status of partitions with something to read, or with unknown values."""
    members, unread, gap_ms = group.members, group.unread, group.usual_gap_ms
    is_simple, still_ms = _is_simple(group), _still_ms(group, now_ms)
    if not group.rows and group.lag.lag:  # from the history, which has no partitions
        lag, wait = group.lag, group.wait
        is_waiting = None if wait.lag_ms is None else bool(wait.waiting)
        facts = rules.Facts(0, lag.lag, lag.lost, None, False, is_waiting, wait.lag_ms, wait.margin_ms, still_ms,
                      members=members, idle_ms=still_ms)  # fmt: skip
        yield None, facts, rules.partition_status(facts)
    for row, own in zip(group.rows, group.waits, strict=True):
        is_beyond = row.status is LagStatus.BEYOND_LOG_END
        if row.lag == 0 and not is_beyond:
            continue
        stood = group.stood.get(row.tp)
        facts = rules.Facts(
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
        yield row, facts, rules.partition_status(facts)
