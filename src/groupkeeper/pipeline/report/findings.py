"""Findings to act on: the groups that need attention by `groupkeeper.rules.urgency`, rebalance storms of the time
shown, open transactions, and unused groups and offsets. Each has a figure and a command for the next step. `ways`: how
commands reach the clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from groupkeeper.operations.selection import command_about
from groupkeeper.operations.transactions import next_step as transaction_step
from groupkeeper.pipeline.report.model import STALE_REASONS, Finding, Group, Key, Stale, by_group
from groupkeeper.rules import words
from groupkeeper.rules.causes import no_members
from groupkeeper.rules.progress import Trend, overtaken_ms
from groupkeeper.rules.status import REBALANCES, REBALANCES_MS, Status
from groupkeeper.rules.transactions import Standing, describe_transaction, standing_of_known
from groupkeeper.rules.urgency import SOON_MS, TO_START, Urgency, UrgencyFacts, because, next_step, order, urgency
from groupkeeper.rules.words import capitalized, waiting
from groupkeeper.shell import NO_WAYS, Ways, command, option, tool, way_to

_STANDING = (Status.STOPPED, Status.STALLED)
_WAITING = (*_STANDING, Status.REWOUND, Status.LAGGING)
_WEEK_MS = 7 * 86_400_000
_MORE_MS = 7 * 86_400_000
"""How much longer a command keeps records that a group would lose."""

_STORM = "rebalances in 10 min"

Row = Mapping[str, Any]
Storms = Mapping[Key, tuple[int, datetime]]


class ReportedGroup(NamedTuple):
    """A group and facts about it. `partition`, `since`: of the partition that gives the group its status; `kept_ms`:
    the retention of the topic that loses records first, 0: unknown, or none loses records.
    """

    group: Group
    urgency_facts: UrgencyFacts
    partition: str | None
    since: datetime | None
    kept_ms: int


def reported(
    groups: Iterable[Group], lags: Iterable[Row], judged: Iterable[Row], topics: Iterable[Row]
) -> list[ReportedGroup]:
    """All groups, in order, with their urgency. `lags`: rows of tables.LAG with records to read; `judged`: rows of
    tables.STATUS; `topics`: rows with their retention. Loss is predicted for each partition by its own status and
    rates: one partition of a group may be stopped while others are read.
    """
    rows, statuses = by_group(lags), by_group(judged)
    kept = {(row["cluster"], row["topic"]): row["retention_ms"] for row in topics if row["retention_ms"]}
    found = []
    for group in groups:
        one = _judged(group, rows.get(group.key, ()), statuses.get(group.key, ()), kept)
        found.append(one._replace(group=group._replace(urgency=urgency(one.urgency_facts))))
    return sorted(found, key=lambda each: (order(each.urgency_facts), each.group.cluster, each.group.group_id))


def _judged(group: Group, rows: Sequence[Row], judged: Sequence[Row], kept: Mapping[Key, int]) -> ReportedGroup:
    status = Status(group.status)
    is_well = status in (Status.OK, Status.UNKNOWN)
    own = [row for row in judged if row["topic"] is not None]
    alike = [row for row in own if row["status"] == status]
    first = max(alike, key=lambda row: (row["lag_ms"] or 0, row["topic"], row["partition"]), default=None)
    still = {_tp_of(row) for row in own if row["status"] in _STANDING}
    left_ms, lost = min(
        ((ms, row) for row in rows
         if (ms := _left_ms(row, kept.get((group.cluster, row["topic"])), is_still=_tp_of(row) in still,
                            is_well=is_well)) is not None and ms < _WEEK_MS),
        key=itemgetter(0), default=(None, None),
    )  # fmt: skip
    rated = [row for row in rows if row["trend"] is not None]
    growth = sum(row["produced_per_s"] - row["consumed_per_s"] for row in rated)
    late = max((row["catch_up_ms"] for row in rated if row["catch_up_ms"] is not None), default=None)
    is_left = not group.members and status in _WAITING and group.group_type not in TO_START
    of = UrgencyFacts(
        status, group.members,
        None if is_well else group.lag_ms if first is None else first["lag_ms"],
        left_ms, "" if lost is None else _tp_of(lost),
        growth if any(row["trend"] == Trend.GROWING for row in rated) else None, late,
        partitions=group.partitions, kind=group.group_type, never_commits=bool(judged) and not own,
        why=capitalized(no_members(group.lag or 0)) if is_left else group.rule,
    )  # fmt: skip
    kept_ms = 0 if lost is None else kept.get((group.cluster, lost["topic"]), 0)
    since = group.since if first is None else first["since_time"]
    return ReportedGroup(group, of, None if first is None else _tp_of(first), since, kept_ms)


def _tp_of(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"


def _left_ms(row: Row, retention_ms: int | None, *, is_still: bool, is_well: bool) -> int | None:
    """As `overtaken_ms`. None for an unread partition (`is_still` tells, if rates are unknown) with more than half of
    its retention left, and, for unknown rates, with more than an hour left or a group that is well.
    """
    margin: int | None = row["retention_margin_ms"]
    is_unread = is_still if row["consumed_per_s"] is None else not row["consumed_per_s"]
    is_near = margin is not None and margin < SOON_MS and (not is_well or margin <= 0)
    if margin is None or (is_unread and not is_near and retention_ms is not None and margin > retention_ms / 2):
        return None
    if is_unread or row["trend"] is None:
        return margin if is_unread or is_near else None
    return overtaken_ms(margin, row["lag"], row["produced_per_s"] or 0, row["consumed_per_s"] or 0)


def acting(
    groups: Iterable[ReportedGroup], lost: Mapping[Key, int | None], storms: Storms, ways: Ways = NO_WAYS
) -> list[Finding]:
    """The groups that need attention, in order. `lost`: records, by group; `storms`: from `fullest`."""
    return [_finding(each, lost, storms, ways) for each in groups if each.group.urgency is not Urgency.NONE]


def _finding(each: ReportedGroup, lost: Mapping[Key, int | None], storms: Storms, ways: Ways) -> Finding:
    group, of, partition, since = each.group, each.urgency_facts, each.partition, each.since
    value: float | None = of.wait_ms
    unit, note = f"ms {group.status}", because(of)
    if group.urgency is Urgency.STORM:
        (value, since), partition, unit = storms.get(group.key, (None, since)), None, _STORM
    elif group.urgency is Urgency.SLIPPING and (of.grows or of.left_ms is None):
        partition, since = None, group.measured_time
        value, unit = (of.growth_per_s, "records/s more") if of.grows else (of.catch_up_ms, "ms to catch up")
    elif group.status == Status.LOSING:
        value, unit, partition = lost.get(group.key), "records lost", None
    elif group.urgency in (Urgency.EXPIRING, Urgency.SLIPPING):
        value, unit, partition, since = max(0, of.left_ms or 0), "ms left", of.left_in, group.measured_time
    way = way_to(group.cluster, ways)
    step = command_about(way, next_step(of), group.group_id)
    if each.kept_ms > 0 and group.urgency is not Urgency.LEFT:
        alter = ("--alter", "--entity-type", "topics", *option("--entity-name", of.left_in.rpartition("-")[0]),
                 "--add-config", f"retention.ms={each.kept_ms + _MORE_MS}")  # fmt: skip
        step = tool(way, "kafka-configs.sh", alter)
        note += f" The command keeps records {words.duration(_MORE_MS)} longer."
    elif group.status == Status.STALLED and group.members and each.partition is not None:
        topic, _, number = each.partition.rpartition("-")
        verb = ("plan", "reset", *option("--topic", f"{topic}:{number}"), "--shift-by", "1")
        step = command_about(way, verb, group.group_id)
        note += " If the record cannot be processed, the plan skips it."
    return Finding(group.urgency, *group.key, partition, value, unit, since, note, step)


def fullest(rates: Any) -> dict[Key, tuple[int, datetime]]:
    """For each group, the most rebalances within any 10 minutes, and when these began. `rates`: an Arrow table of
    cluster, group_id, minute and completed_rebalances, in any order.
    """
    if not len(rates):
        return {}
    rows = rates.sort_by([(name, "ascending") for name in ("cluster", "group_id", "minute")])
    keys = list(zip(rows["cluster"].to_pylist(), rows["group_id"].to_pylist(), strict=True))
    begun = rows["minute"].to_pylist()
    numbers: dict[Key, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    minutes = np.array([int(each.timestamp()) // 60 for each in begun], dtype=np.int64)
    counts = np.cumsum(np.array(rows["completed_rebalances"].to_pylist(), dtype=np.int64))
    totals = _sums(group, minutes, counts, REBALANCES_MS // 60_000)
    best: dict[Key, tuple[int, datetime]] = {}
    for key, (first, total) in zip(keys, totals, strict=True):
        if total > best.get(key, (0, None))[0]:
            best[key] = (total, begun[first])
    return best


def _sums(
    group: npt.NDArray[np.int64], minutes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], width: int
) -> list[tuple[int, int]]:
    """For each row, the number of its group's first row within `width` minutes, and the sum of counts from there on."""
    key = group * (1 << 40) + minutes
    first = np.searchsorted(key, key - width + 1)
    before = np.where(first > 0, counts[np.maximum(first - 1, 0)], 0)
    return list(zip(first.tolist(), (counts - before).tolist(), strict=True))


def calmed(groups: Iterable[ReportedGroup], storms: Storms, ways: Ways = NO_WAYS) -> list[Finding]:
    """Groups that rebalanced again and again, and no longer do, the worst first."""
    found = []
    for group, *_ in groups:
        count, began = storms.get(group.key, (0, None))
        if count >= REBALANCES and group.urgency is not Urgency.STORM:
            note = f"{words.counted(group.rebalances, 'rebalance')} in the whole time shown; it is {group.status} now"
            step = command_about(way_to(group.cluster, ways), ("groups", "watch"), group.group_id)
            found.append(Finding("calmed", *group.key, None, count, _STORM, began, note, step))
    return sorted(found, key=lambda each: -(each.value or 0))


def held(transactions: Sequence[Row], ways: Ways = NO_WAYS) -> list[Finding]:
    """Transactions that hold up groups, or that nothing will end; `transactions`: rows of tables.TRANSACTIONS."""
    found = []
    for row in transactions:
        if not row["is_hanging"] and not row["groups"]:
            continue
        known, open_ms, timeout_ms = row["transactional_id"], row["open_ms"], row["timeout_ms"]
        standing = Standing.HANGING if row["is_hanging"] else Standing.UNCLAIMED
        if timeout_ms is not None:
            standing = standing_of_known("Ongoing", open_ms, timeout_ms)
        note = describe_transaction(known or f"producer {row['producer_id']}", standing, open_ms, timeout_ms)
        note += f"; {waiting(row['groups'] or 0, 'group')}"
        step = command(way_to(row["cluster"], ways), *transaction_step(standing, known, row["topic"], row["partition"]))
        found.append(
            Finding("held", row["cluster"], "", _tp_of(row), row["held_offsets"], "offsets held", row["started_time"],
                    note, step)
        )  # fmt: skip
    return sorted(found, key=lambda each: -(each.value or 0))


def unused(stale: Sequence[Stale], ways: Ways = NO_WAYS) -> list[Finding]:
    """Groups and offsets that could be removed, that will expire, or that have lost records."""
    options = {"idle": ("--idle", "30d"), "topic_deleted": ("--missing-topics",), "expiring": ("--expiring", "1d")}
    found = []
    for each in stale:
        verb = ("plan", "sweep", *options[each.reason]) if each.reason in options else ("groups", "describe")
        what = words.counted(each.offsets, "offset") if each.offsets else "the group as a whole"
        value, unit = each.lost, "records lost"
        if each.reason != "below_log_start":
            value, unit = None if each.idle_days is None else round(each.idle_days * 86_400_000), "ms idle"
        note = f"{STALE_REASONS.get(each.reason, each.reason)}: {what}"
        step = command_about(way_to(each.cluster, ways), verb, each.group_id)
        found.append(Finding("stale", each.cluster, each.group_id, None, value, unit, each.expires_time, note, step))
    return found
