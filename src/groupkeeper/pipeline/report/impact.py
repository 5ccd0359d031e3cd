"""What to act on: records that will be lost, growing lag, groups that wait, rebalance storms, open transactions, and
unused groups. Each finding has one figure, by which its list is ranked, and a command for the next step. `ways`: how
commands reach the clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from groupkeeper.pipeline.report import words
from groupkeeper.pipeline.report.model import Finding, Group, Stale
from groupkeeper.rules.progress import Trend, catch_up_ms, overtaken_ms
from groupkeeper.rules.status import REBALANCES, REBALANCES_MS, Status
from groupkeeper.shell import NO_WAYS, Ways, command, option, tool, way_to

_STANDING = (Status.STOPPED, Status.STALLED)
_SOON_MS = 7 * 86_400_000
_SLOW_MS = 3_600_000
_MORE_MS = 7 * 86_400_000

Key = tuple[str, str]
Row = Mapping[str, Any]


def losing(
    groups: Sequence[Group],
    lags: Sequence[Row],
    gone: Sequence[Stale],
    topics: Sequence[Row],
    judged: Iterable[Row],
    ways: Ways = NO_WAYS,
) -> list[Finding]:
    """Groups that lose unread records: now, or within a week at the present rates. `lags`: rows of tables.LAG with
    records to read; `gone`: entries of tables.STALE with below_log_start; `topics`: rows with their retention;
    `judged`: rows of tables.STATUS about partitions. Future loss is predicted for each partition by its own status and
    rates: one partition of a group may be stopped while others are read.
    """
    known = {(each.cluster, each.group_id): each for each in groups}
    lost = {(each.cluster, each.group_id): each for each in gone}
    retention = {(row["cluster"], row["topic"]): row["retention_ms"] for row in topics if row["retention_ms"]}
    found = []
    for key, group in known.items():
        if group.status == Status.LOSING:
            own = lost.get(key)
            found.append(
                Finding(
                    Status.LOSING, *key, None, None if own is None else own.lost_records, "records lost", group.since,
                    group.rule, _about("describe", key, ways),
                )
            )  # fmt: skip
    still = {_place(one) for one in judged if one["status"] in _STANDING}
    nearest: dict[Key, tuple[int, Row]] = {}
    for row in lags:
        key = (row["cluster"], row["group_id"])
        if key not in known or known[key].status == Status.LOSING:
            continue
        left = _left_ms(row, _place(row) in still, retention.get((row["cluster"], row["topic"])))
        if left is not None and left < _SOON_MS and (key not in nearest or left < nearest[key][0]):
            nearest[key] = left, row
    for key, (left, row) in sorted(nearest.items(), key=lambda each: each[1][0]):
        kept_ms = retention.get((row["cluster"], row["topic"]))
        found.append(_overtaken(known[key], row, left, _is_unread(row, _place(row) in still), kept_ms, ways))
    return found


def _place(row: Row) -> tuple[str, str, str, int]:
    return row["cluster"], row["group_id"], row["topic"], row["partition"]


def _is_unread(row: Row, is_still: bool) -> bool:
    """Whether the group does not read the partition; `is_still` (stopped or stalled) decides if there are no rates."""
    return is_still if row["consumed_per_s"] is None else not row["consumed_per_s"]


def _left_ms(row: Row, is_still: bool, retention_ms: int | None) -> int | None:
    """As `overtaken_ms`. A partition that is not read is reported only once at most half of its retention is left."""
    margin: int | None = row["retention_margin_ms"]
    if margin is None or _is_unread(row, is_still):
        is_far = margin is not None and retention_ms is not None and margin > max(0, retention_ms / 2)
        return None if is_far else margin
    if row["trend"] is None and margin > 0:
        return None
    return overtaken_ms(margin, row["lag"], row["produced_per_s"] or 0, row["consumed_per_s"] or 0)


def _overtaken(group: Group, row: Row, left: int, is_unread: bool, retention_ms: int | None, ways: Ways) -> Finding:
    place = f"{row['topic']}-{row['partition']}"
    count = words.counted(row["lag"], "record")
    if left > max(0, row["retention_margin_ms"]):
        when = words.duration(left)
        note = f"{count} to read, and more arrive than are read: in {when} retention gets ahead of the group"
    else:
        when = "may be removed at any moment" if left <= 0 else f"may be removed in {words.duration(left)}"
        note = f"the oldest of {count} to read {when}"
        if is_unread:
            note += ", which the group does not read"
        elif left > 0:
            until_read = words.duration(catch_up_ms(row["lag"], 0, row["consumed_per_s"]))
            note += f", and others of that age soon after; reading all of them takes {until_read}"
    words_of = _about("describe", (group.cluster, group.group_id), ways)
    if retention_ms is not None and retention_ms > 0:
        alter = ("--alter", "--entity-type", "topics", *option("--entity-name", row["topic"]),
                 "--add-config", f"retention.ms={retention_ms + _MORE_MS}")  # fmt: skip
        words_of = tool(way_to(group.cluster, ways), "kafka-configs.sh", alter)
        note += f"; the command keeps records {words.duration(_MORE_MS)} longer"
    return Finding(
        Status.LOSING, group.cluster, group.group_id, place, max(0, left), "ms left", row["measured_time"], note,
        words_of,
    )  # fmt: skip


def behind(groups: Sequence[Group], lags: Sequence[Row], ways: Ways = NO_WAYS) -> list[Finding]:
    """Groups that get further behind, and those that catch up late. `lags`: as for `losing`."""
    rows: dict[Key, list[Row]] = defaultdict(list)
    for row in lags:
        rows[row["cluster"], row["group_id"]].append(row)
    growing, slow = [], []
    for group in groups:
        if group.status in _STANDING:  # these are in the list of groups that wait
            continue
        own = [row for row in rows[group.cluster, group.group_id] if row["trend"] is not None]
        growth = sum(row["produced_per_s"] - row["consumed_per_s"] for row in own)
        longest = max((row["catch_up_ms"] for row in own if row["catch_up_ms"] is not None), default=0)
        if growth > 0 and any(row["trend"] == Trend.GROWING for row in own):
            growing.append((group.status == Status.OK, -growth, _growing(group, own, growth, ways)))
        elif longest >= _SLOW_MS:
            note = f"catches up in {words.duration(longest)} at the present rates"
            slow.append(
                Finding(Trend.GROWING, group.cluster, group.group_id, None, longest, "ms to catch up",
                        group.measured_time, f"{note}; {words.number(group.lag)} to read",
                        _about("members", (group.cluster, group.group_id), ways))
            )  # fmt: skip
    first = [each for _, _, each in sorted(growing, key=lambda each: (*each[:2], each[2].cluster, each[2].group_id))]
    return first + sorted(slow, key=lambda each: -(each.value or 0))


_TO_START = {
    "spark": "it is a Spark query: check in Spark whether it runs",
    "simple": "no member ever joins it: check the program that commits for it",
}
"""What to do for groups that have no members even while they are in use."""


def _growing(group: Group, rows: Sequence[Row], growth: float, ways: Ways) -> Finding:
    come, read = (sum(row[name] for row in rows) for name in ("produced_per_s", "consumed_per_s"))
    note = (
        f"never catches up: {words.rate(come)} arrive, {words.rate(read)} are read; {words.number(group.lag)} to read"
    )
    if group.group_type in _TO_START:
        note += f"; {_TO_START[group.group_type]}"
    elif not group.members:
        note += "; it has no members"
    elif group.members < group.partitions:
        more = group.partitions - group.members
        note += (
            f"; {words.counted(group.members, 'member')} for {group.partitions:,} partitions: {more:,} more can help"
        )
    else:
        note += "; more members would have no partitions"
    return Finding(
        Trend.GROWING, group.cluster, group.group_id, None, growth, "records/s more", group.measured_time, note,
        _about("members", (group.cluster, group.group_id), ways),
    )  # fmt: skip


def waiting(groups: Sequence[Group], judged: Iterable[Row], ways: Ways = NO_WAYS) -> list[Finding]:
    """Stopped and stalled groups, the longest wait first. `judged`: rows of tables.STATUS about partitions. A finding
    names one partition with the group's status: the one whose oldest record has waited longest.
    """
    of_partitions: dict[tuple[str, str, str], Row] = {}
    for one in judged:
        key = (one["cluster"], one["group_id"], one["status"])
        if key not in of_partitions or _wait(one) > _wait(of_partitions[key]):
            of_partitions[key] = one
    found = []
    for group in groups:
        if group.status not in _STANDING:
            continue
        row = of_partitions.get((group.cluster, group.group_id, group.status))
        place = None if row is None else f"{row['topic']}-{row['partition']}"
        words_of = _about("members", (group.cluster, group.group_id), ways)
        note = group.rule
        if group.status == Status.STALLED and row is not None:
            verb = ("plan", "reset", *option("--topic", f"{row['topic']}:{row['partition']}"), "--shift-by", "1")
            words_of = command(way_to(group.cluster, ways), verb, (group.group_id,))
            note += "; if the record cannot be processed, the plan skips it"
        elif not group.members:
            note += f"; {_TO_START.get(group.group_type, 'start its consumers')}"
        found.append(
            Finding(
                "waiting", group.cluster, group.group_id, place, group.lag_ms if row is None else row["lag_ms"],
                f"ms {group.status}", group.since if row is None else row["since_time"], note, words_of,
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: -(each.value or 0))


def _wait(row: Row) -> tuple[int, str, int]:
    """The order by which present.status, too, chooses the partition whose `rule` a group has."""
    return row["lag_ms"] or 0, row["topic"], row["partition"]


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
    """For each row the first one of its group that is less than `width` minutes older, and the sum from there on."""
    place = group * (1 << 40) + minutes
    first = np.searchsorted(place, place - width + 1)
    before = np.where(first > 0, counts[np.maximum(first - 1, 0)], 0)
    return list(zip(first.tolist(), (counts - before).tolist(), strict=True))


def storms(groups: Sequence[Group], most: Mapping[Key, tuple[int, datetime]], ways: Ways = NO_WAYS) -> list[Finding]:
    """Groups that rebalance again and again, the worst first."""
    found = []
    for group in groups:
        count, began = most.get((group.cluster, group.group_id), (0, None))
        if count < REBALANCES:
            continue
        now = "it still does" if group.status == Status.UNSTABLE else f"its status is {group.status} now"
        note = f"{words.counted(group.rebalances, 'rebalance')} in the whole time shown; {now}"
        found.append(
            Finding("storm", group.cluster, group.group_id, None, count, "rebalances in 10 min", began, note,
                    _about("watch", (group.cluster, group.group_id), ways))
        )  # fmt: skip
    return sorted(found, key=lambda each: -(each.value or 0))


def held(transactions: Sequence[Row], ways: Ways = NO_WAYS) -> list[Finding]:
    """Transactions that hold up groups, or that nothing will end; `transactions`: rows of tables.TRANSACTIONS."""
    found = []
    for row in transactions:
        if not row["is_hanging"] and not row["groups"]:
            continue
        place = f"{row['topic']}-{row['partition']}"
        name = row["transactional_id"] or f"producer {row['producer_id']}"
        note = f"{name}, open for {words.duration(row['open_ms'])}; {words.counted(row['groups'] or 0, 'group')} "
        note += "waits" if row["groups"] == 1 else "wait"
        known, verb = row["transactional_id"], ["transactions", "describe", *option("--topic", row["topic"])]
        if row["is_hanging"]:
            note += "; no coordinator has it: nothing will end it"
            verb = ["transactions", "abort", *option("--partition", f"{row['topic']}:{row['partition']}")]
        elif known is None:
            note += "; no coordinator shows it"
        else:
            ends = "" if row["timeout_ms"] is None else f" after {words.duration(row['timeout_ms'])}"
            note += f"; its coordinator aborts it{ends}"
        names = [] if known is None else [known]
        found.append(
            Finding("held", row["cluster"], "", place, row["held_offsets"], "offsets held", row["started_time"], note,
                    command(way_to(row["cluster"], ways), verb, names))
        )  # fmt: skip
    return sorted(found, key=lambda each: -(each.value or 0))


def unused(stale: Sequence[Stale], ways: Ways = NO_WAYS) -> list[Finding]:
    """Groups and offsets that could be removed, that will expire, or that have lost records."""
    options = {"idle": ("--idle", "30d"), "topic_deleted": ("--missing-topics",), "expiring": ("--expiring", "1d")}
    found = []
    for each in stale:
        words_of = _about("describe", (each.cluster, each.group_id), ways)
        if each.reason in options:
            verb = ("plan", "sweep", *options[each.reason])
            words_of = command(way_to(each.cluster, ways), verb, (each.group_id,))
        what = words.counted(each.offsets, "offset") if each.offsets else "the group as a whole"
        value, unit = each.lost_records, "records lost"
        if each.reason != "below_log_start":
            value, unit = None if each.idle_days is None else round(each.idle_days * 86_400_000), "ms idle"
        note = f"{words.STALE.get(each.reason, each.reason)}: {what}"
        found.append(
            Finding("stale", each.cluster, each.group_id, None, value, unit, each.expires_time, note, words_of)
        )
    return found


def _about(verb: str, group: Key, ways: Ways) -> tuple[str, ...]:
    """The command of `groupkeeper groups` about one group."""
    cluster, group_id = group
    return command(way_to(cluster, ways), ("groups", verb), (group_id,))
