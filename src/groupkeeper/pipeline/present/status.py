"""tables.STATUS: collects the facts by which groupkeeper.rules.status judges groups and partitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.present.members import assigned
from groupkeeper.pipeline.present.trends import waits_ms
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import LAG, LOG_OFFSETS, MEMBERS, STATUS
from groupkeeper.pipeline.tables.schema import LARGEST, TIME
from groupkeeper.pipeline.tables.state import PACES
from groupkeeper.rules import status as rules
from groupkeeper.rules.progress import usual_gap_ms
from groupkeeper.rules.status import Status
from groupkeeper.rules.words import counted

Key = tuple[str, str]
Columns = Mapping[str, pa.Array | Sequence[Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE = -(2**63)
_PLACE = [STATUS.arrow.field(name) for name in STATUS.key]
_FACTS = rules.Facts._fields[: rules.Facts._fields.index("members")]
"""Facts of partitions; the others are of their group."""

_PARTITION_FACTS = pa.schema([
    *_PLACE, *((name, pa.bool_() if name.startswith("is_") else pa.int64()) for name in _FACTS),
    *((name, pa.int64()) for name in ("lag_ms", "rewind_us", "measured_us")), ("problem", pa.string()),
    ("commit_gaps", pa.list_(pa.int64())), ("move_gaps", pa.list_(pa.int64())),
])  # fmt: skip
_STATUS_COLUMNS = ("status", "since_time", "rule")
_OF_GROUP = (*STATUS.key, "status", "since_time", "lag", "rule", "lag_ms")


class _JudgedPartition(NamedTuple):
    """A row of _PARTITION_FACTS."""

    facts: Sequence[Any]
    """The values of _FACTS."""
    cluster: str
    group_id: str
    topic: str
    partition: int
    lag_ms: int | None
    rewind_us: int | None
    measured_us: int | None
    problem: str | None
    commit_gaps: list[int] | None
    move_gaps: list[int] | None


class _Group:
    """A group, and the summary of its partitions. Times are in µs since 1970."""

    def __init__(self) -> None:
        self.members: int | None = None
        self.is_simple = False
        self.last_commit_us: int | None = None
        self.lately_us: Sequence[int] = ()
        """The times of the last rebalances, in order."""
        self.lag: int | None = None
        self.lag_ms: int | None = None
        self.read: Collection[str] | None = None
        """The topics that the members read; None: unknown."""
        self._worst: tuple[tuple[int, bool, int, str, int], Status, str] | None = None
        self._alike: Counter[Status] = Counter()
        self._since_us: dict[Status, int] = {}

    @property
    def is_told(self) -> bool:
        return self._worst is not None or len(self.lately_us) >= rules.REBALANCES

    def judged(self, row: _JudgedPartition) -> tuple[Status, int | None, str]:
        """Judges a partition of the group: its status, since when, and why."""
        is_dated = self.last_commit_us is not None and row.measured_us is not None
        facts = rules.Facts._make((
            *row.facts, self.members, self.is_simple,
            None if self.read is None or not self.members else row.topic in self.read,
            max(0, (row.measured_us or 0) - (self.last_commit_us or 0)) // 1000 if is_dated else None,
            usual_gap_ms(row.commit_gaps) if row.commit_gaps else None,
            usual_gap_ms(row.move_gaps) if row.move_gaps else None,
        ))  # fmt: skip
        found = rules.partition_status(facts)
        why = rules.reason(facts, found)
        if found is Status.UNKNOWN and row.problem is not None and row.problem != why:
            why = row.problem if facts.lag is None else f"{why}: {row.problem}"
        age_ms = rules.status_age_ms(facts, found)
        since_us = None if age_ms is None or row.measured_us is None else row.measured_us - age_ms * 1000
        status = found, row.rewind_us if found is Status.REWOUND else since_us, why
        self._add(row, *status, is_committed=facts.committed_offset is not None)
        return status

    def _add(self, row: _JudgedPartition, found: Status, since_us: int | None, why: str, *, is_committed: bool) -> None:
        rank = -1 if found is Status.ABANDONED and self.members else rules.RANKS[found]
        largest = (row.lag_ms or 0, row.topic, row.partition) if is_committed else (0, "", 0)
        badness = rank, is_committed, *largest
        if self._worst is None or badness > self._worst[0]:
            self._worst = badness, found, f"{row.topic}-{row.partition}: {why}"
        self._alike[found] += 1
        if since_us is not None:
            self._since_us[found] = min(since_us, self._since_us.get(found, since_us))

    def columns(self) -> tuple[Status, int | None, int | None, str, int | None]:
        """The group's columns from `status` on. `rule` is that of the partition with the group's status that has waited
        longest; without committed offsets, of the first partition.
        """
        worst = Status.OK if self._worst is None else self._worst[1]
        found = rules.group_status(worst, self.members, len(self.lately_us))
        why = []
        if found is not Status.UNSTABLE and self._worst is not None:
            why.append(self._worst[2])
            more = self._alike[worst] - 1
            if more and not self._worst[0][1]:
                why.append(f"{counted(more, 'more partition')} {'is' if more == 1 else 'are'} like it")
        if len(self.lately_us) >= rules.REBALANCES:
            why.append(rules.rebalanced(len(self.lately_us)))
        since_us = min(self.lately_us) if found is Status.UNSTABLE else self._since_us.get(worst)
        return found, since_us, self.lag, "; ".join(why), self.lag_ms


def status(
    paces: Rows, lag: Rows, rewinds: Rows, groups: Rows, facts: Rows, members: Rows | None = None,
    log_offsets: Rows | None = None, queries: Rows | None = None,
) -> pa.Table:  # fmt: skip
    """tables.STATUS at the instant of each cluster's measurement, from rows of the tables with the arguments' names
    (`paces`: tables.state.PACES, `facts`: GROUP_FACTS). Assigned partitions without a committed offset count for their
    group, if `members` and `log_offsets` are given. `queries`: paces of Spark's.
    """
    those, logs, own_paces = (
        table.arrow.empty_table() if rows is None else rel.loaded(rows)
        for rows, table in ((members, MEMBERS), (log_offsets, LOG_OFFSETS), (queries, PACES))
    )
    lags = rel.loaded(lag)
    owned = assigned(those, logs)
    of_groups = _groups(lags, rel.loaded(groups), rel.loaded(facts), those, owned, logs)
    committed = _committed(lags, rel.together(rel.loaded(paces), own_paces), rel.loaded(rewinds))
    partitions = pa.concat_tables([committed, _lacking(lags, owned, logs)])
    partitions = partitions.sort_by([(name, "ascending") for name in STATUS.key]).combine_chunks()
    judged = [_judged(batch, of_groups) for batch in partitions.to_batches()]
    told = {key: group.columns() for key, group in of_groups.items() if group.is_told}
    return pa.Table.from_batches([*judged, _of_groups(told)], STATUS.arrow)


def _committed(lags: pa.Table, paces: pa.Table, rewinds: pa.Table) -> pa.Table:
    """Rows of _PARTITION_FACTS for committed offsets."""
    waits, are_known = waits_ms(lags)
    is_late = are_known & (waits >= rules.PATIENCE_MS)  # otherwise no gap matters
    at = rel.matches(*rel.keys(LAG.key, lags, paces))
    pace, late = rel.taken(paces, at), rel.taken(paces, np.where(is_late, at, -1))
    committed, start, end = (lags[name] for name in ("committed_offset", "log_start_offset", "log_end_offset"))
    lost = pc.max_element_wise(pc.subtract(start, pc.max_element_wise(committed, 0)), 0)
    stood = pc.coalesce(pace["moved_time"], pace["first_time"], lags["commit_time"])
    offset_before_rewind, rewind_us = _gone_back(lags, rewinds)
    made = {
        "waits_ms": pa.array(waits, mask=~are_known), "lost": pc.if_else(pc.less(committed, 0), 0, lost),
        "in_log": pc.subtract(end, start), "is_beyond": pc.fill_null(pc.greater(committed, end), False),
        "margin_ms": lags["retention_margin_ms"], "offset_before_rewind": offset_before_rewind, "rewind_us": rewind_us,
        "measured_us": lags["measured_time"].cast(pa.int64()),
        "quiet_ms": rel.ms_between(lags["commit_time"], lags["measured_time"]),
        "still_ms": rel.ms_between(stood, lags["measured_time"]),
        "commit_gaps": late["commit_gaps"], "move_gaps": late["move_gaps"],
    }  # fmt: skip
    return rel.filled(_PARTITION_FACTS, made, lags)


def _gone_back(lags: pa.Table, rewinds: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The highest offset before the rewinds of each partition, and the time (µs) of the last one; null: none. Rewinds
    from past the log's end don't count: that offset was never reached.
    """
    rows = rewinds.filter(pc.equal(rewinds["direction"], "back"))
    at = rel.matches(*rel.keys(LAG.key, rows, lags))
    of = rel.taken(lags.select(["log_end_offset", "measured_time"]), at)
    before, time, measured = rows["from_offset"], rel.numbers(rows["rewind_time"]), of["measured_time"]
    is_own = (at >= 0) & rel.numbers(pc.fill_null(pc.less_equal(before, of["log_end_offset"]), True))
    is_own &= rel.is_known(measured) & (time // 1000 >= rel.numbers(measured) // 1000 - rules.LOOK_BACK_MS)
    found = []
    for each, is_there in ((rel.numbers(before), is_own & rel.is_known(before)), (time, is_own)):
        greatest = np.full(len(lags), _NONE)
        np.maximum.at(greatest, at[is_there], each[is_there])
        found.append(pa.array(greatest, mask=greatest == _NONE))
    return found[0], found[1]


def _lacking(lags: pa.Table, owned: pa.Table, logs: pa.Table) -> pa.Table:
    """Rows of _PARTITION_FACTS for assigned partitions (`owned`, of members.assigned) in which the group has committed
    nothing.
    """
    rows = owned.filter(pc.not_equal(owned["group_type"], "share"))
    rows = rel.unnested(rows.select([*LAG.key[:3], "partitions"]), "partitions").rename_columns(list(LAG.key))
    rows = rows.filter(pc.is_valid(rows["topic"]))
    own, others = rel.keys(LAG.key, rows, lags)
    is_first = np.zeros(len(own), bool)
    is_first[np.unique(own, return_index=True)[1]] = True
    rows = rows.filter(pa.array(is_first & (rel.matches(own, others) < 0)))
    at = rel.matches(*rel.keys(LOG_OFFSETS.key, rows, logs))
    rows, at = rows.filter(pa.array(at >= 0)), at[at >= 0]
    log = rel.taken(logs, at)
    is_empty = pc.or_kleene(log["is_deleted"], pc.invert(_begins(logs, at)))
    size = pc.subtract(log["log_end_offset"], log["log_start_offset"])
    made = {
        "in_log": pc.if_else(pc.fill_null(is_empty, False), 0, size),
        "measured_us": log["measured_time"].cast(pa.int64()), "is_beyond": np.zeros(len(rows), bool),
    }  # fmt: skip
    return rel.filled(_PARTITION_FACTS, made, rows)


def _begins(logs: pa.Table, at: Array) -> pa.ChunkedArray:
    """Whether the logs at these row numbers have any record, by the lookup at offset −1; null: unknown."""
    records = logs["records"].combine_chunks()
    rows = pa.Table.from_struct_array(pc.list_flatten(records))
    is_begin = pc.fill_null(pc.equal(rows["offset"], -1), False)
    of = rel.numbers(pc.list_parent_indices(records).filter(is_begin.combine_chunks()))
    return rel.taken(rows.filter(is_begin), rel.matches(at, of))["is_there"]


def _groups(
    lags: pa.Table, groups: pa.Table, facts: pa.Table, members: pa.Table, owned: pa.Table, logs: pa.Table
) -> dict[Key, _Group]:
    """All groups that are in one of the tables."""
    found: defaultdict[Key, _Group] = defaultdict(_Group)
    key = ("cluster", "group_id")
    readers = _readers(members, owned)
    for row in groups.select([*key, "members", "group_type", "group_state", "last_commit_time"]).to_pylist():
        group = found[row["cluster"], row["group_id"]]
        group.members, group.is_simple = row["members"], row["group_type"] in ("simple", "spark")
        group.last_commit_us = _us(row["last_commit_time"])
        if row["group_state"] == "Stable":
            group.read = rules.topics_read(readers.get((row["cluster"], row["group_id"]), ()))
    now_us = _now_us(lags, logs)
    for row in facts.select([*key, "rebalanced"]).to_pylist():
        since_us = (now_us.get(row["cluster"], LARGEST) // 1000 - rules.REBALANCES_MS) * 1000
        times = map(_us, row["rebalanced"] or ())
        found[row["cluster"], row["group_id"]].lately_us = [each for each in times if each and each >= since_us]
    exact = lags.append_column("records", lags["lag"].cast(pa.decimal128(38)))  # sums of 64 bits would wrap
    for row in exact.group_by(list(key)).aggregate([("records", "sum"), ("lag_ms", "max")]).to_pylist():
        group = found[row["cluster"], row["group_id"]]
        known = row["records_sum"]
        group.lag, group.lag_ms = None if known is None else min(int(known), LARGEST), row["lag_ms_max"]
    for group_key in readers:
        _ = found[group_key]
    return dict(found)


def _readers(members: pa.Table, owned: pa.Table) -> dict[Key, list[rules.Subscription]]:
    """The subscriptions and assigned topics of each group's members."""
    topics: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in owned.select([*MEMBERS.key, "topic"]).to_pylist():
        if row["topic"] is not None:
            topics[row["cluster"], row["group_id"], row["member_id"]].add(row["topic"])
    found: defaultdict[Key, list[rules.Subscription]] = defaultdict(list)
    for row in members.select([*MEMBERS.key, "group_type", "subscribed_topics", "subscribed_regex"]).to_pylist():
        if row["group_type"] not in (None, "share", "streams"):
            key = row["cluster"], row["group_id"]
            own = topics.get((*key, row["member_id"]), ())
            found[key].append(rules.Subscription(row["subscribed_topics"], bool(row["subscribed_regex"]), list(own)))
    return found


def _now_us(*measured: pa.Table) -> dict[str, int]:
    """The time of each cluster's last measurement, in µs."""
    whole = pa.concat_tables([each.select(["cluster", "measured_time"]) for each in measured])
    last = whole.filter(pc.is_valid(whole["measured_time"])).group_by("cluster").aggregate([("measured_time", "max")])
    return dict(zip(last["cluster"].to_pylist(), rel.numbers(last["measured_time_max"]).tolist(), strict=True))


def _us(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // timedelta(microseconds=1)


def _judged(batch: pa.RecordBatch, of_groups: Mapping[Key, _Group]) -> pa.RecordBatch:
    """Judges a batch of partitions, all of which count for their groups; returns the rows of those with an offset."""
    values = {name: rel.values(batch[name]) for name in _PARTITION_FACTS.names}
    facts = zip(*(values.pop(name) for name in _FACTS), strict=True)
    rows = map(_JudgedPartition._make, zip(facts, *values.values(), strict=True))
    statuses = [of_groups[row.cluster, row.group_id].judged(row) for row in rows]
    told: Columns = dict(zip(_STATUS_COLUMNS, zip(*statuses, strict=True), strict=False))
    kept = {name: batch[name] for name in STATUS.names if name not in _STATUS_COLUMNS}
    return _batch({**kept, **told}).filter(batch["committed_offset"].is_valid())


def _of_groups(told: Mapping[Key, tuple[Any, ...]]) -> pa.RecordBatch:
    rows = zip(*((*key, None, None, *own) for key, own in told.items()), strict=True)
    return _batch(dict(zip(_OF_GROUP, rows, strict=False)))


def _batch(columns: Columns) -> pa.RecordBatch:
    """A batch of tables.STATUS. Columns may be missing only if there are no rows."""
    arrays = [_array(columns.get(field.name, ()), field.type) for field in STATUS.arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=STATUS.arrow)


def _array(column: pa.Array | Sequence[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return pa.array(column, pa.int64()).cast(TIME) if kind == TIME else pa.array(column, kind)
