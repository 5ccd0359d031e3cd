"""tables.STATUS: how groups do, by groupkeeper.rules.status. SQL collects the facts; the rules judge them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.present.sql import ASSIGNED, Rows, empty, made, values
from groupkeeper.pipeline.tables import LOG_OFFSETS, MEMBERS, STATUS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.rules.progress import usual_gap_ms
from groupkeeper.rules.status import (
    LOOK_BACK_MS,
    PATIENCE_MS,
    RANKS,
    REBALANCES,
    REBALANCES_MS,
    Facts,
    Status,
    Subscription,
    group_status,
    partition_status,
    reason,
    stands_ms,
    topics_read,
)
from groupkeeper.rules.words import counted, duration

__all__ = ["status"]

Row = Mapping[str, Any]
Key = tuple[str, str]
Columns = Mapping[str, pa.Array | Sequence[Any]]

_NAMES = "names AS (SELECT DISTINCT cluster, topic_id, topic FROM log_offsets WHERE topic_id IS NOT NULL)"
_PARTITIONS = f"""
WITH {_NAMES},
gone_back AS (  -- how far each partition had been before; an offset beyond the log has never been reached
    SELECT cluster, group_id, topic, partition, max(from_offset) AS had_been, max(rewind_time) AS rewind_time
    FROM rewinds JOIN lags USING (cluster, group_id, topic, partition)
    WHERE direction = 'back' AND coalesce(from_offset <= log_end_offset, true)
        AND rewind_time >= later(measured_time, -$look_back_ms)
    GROUP BY ALL
),
lacking AS (  -- partitions that members are assigned, in which the group has committed nothing
    SELECT cluster, group_id, topic, partition,
        CASE WHEN is_deleted OR NOT list_filter(records, lambda each: each['offset'] = -1)[1].is_there THEN 0
            ELSE log_end_offset - log_start_offset END AS in_log,
        epoch_us(measured_time) AS measured_us
    FROM (
        SELECT DISTINCT cluster, group_id, topic, unnest(partitions) AS partition
        FROM ({ASSIGNED}) WHERE group_type != 'share'
    )
    ANTI JOIN lags USING (cluster, group_id, topic, partition)
    JOIN log_offsets USING (cluster, topic, partition)
)
SELECT cluster, group_id, topic, partition, committed_offset, lag, lag_ms, is_waiting, waits_ms(lags) AS waits_ms,
    waits_ms >= $patience_ms AS is_late,  -- otherwise no gap matters
    CASE WHEN committed_offset < 0 THEN 0 ELSE greatest(log_start_offset - committed_offset, 0) END AS lost,
    log_end_offset - log_start_offset AS in_log, coalesce(committed_offset > log_end_offset, false) AS is_beyond,
    retention_margin_ms AS margin_ms, had_been, epoch_us(rewind_time) AS rewind_us,
    CASE WHEN is_late THEN commit_gaps END AS commit_gaps, CASE WHEN is_late THEN move_gaps END AS move_gaps,
    epoch_us(measured_time) AS measured_us, problem, ms_between(commit_time, measured_time) AS quiet_ms,
    ms_between(coalesce(moved_time, first_time, commit_time), measured_time) AS still_ms
FROM lags
LEFT JOIN paces USING (cluster, group_id, topic, partition)
LEFT JOIN gone_back USING (cluster, group_id, topic, partition)
UNION ALL BY NAME SELECT *, false AS is_beyond FROM lacking
ORDER BY cluster, group_id, topic, partition
"""
_GROUPS = f"""
WITH {_NAMES},
now AS (
    SELECT cluster, max(measured_time) AS now
    FROM (SELECT cluster, measured_time FROM lags UNION ALL SELECT cluster, measured_time FROM log_offsets)
    GROUP BY cluster
),
sums AS (
    SELECT cluster, group_id, sum(lag) AS lag, max(lag_ms) AS lag_ms FROM lags GROUP BY ALL
),
readers AS (
    SELECT cluster, group_id, list({{
        'topics': subscribed_topics, 'has_pattern': coalesce(subscribed_regex, '') != '', 'assigned': own
    }}) AS readers
    FROM members LEFT JOIN (
        SELECT cluster, group_id, member_id, list(DISTINCT topic) AS own FROM ({ASSIGNED}) GROUP BY ALL
    ) USING (cluster, group_id, member_id)
    WHERE group_type NOT IN ('share', 'streams')
    GROUP BY ALL
)
SELECT cluster, group_id, members, group_type IN ('simple', 'spark') AS is_simple, lag, lag_ms,
    epoch_us(last_commit_time) AS last_commit_us,
    list_transform(list_filter(rebalanced, lambda time: time >= later(now, -$rebalances_ms)), lambda time:
        epoch_us(time)) AS lately,
    CASE WHEN group_state = 'Stable' THEN readers END AS readers
FROM groups FULL JOIN facts USING (cluster, group_id) FULL JOIN sums USING (cluster, group_id)
FULL JOIN readers USING (cluster, group_id) LEFT JOIN now USING (cluster)
"""
_PLACE = [STATUS.arrow.field(name) for name in STATUS.key]
_PARTITION_FACTS = pa.schema([
    *_PLACE, *((name, pa.int64()) for name in ("committed_offset", "lag", "lag_ms", "waits_ms", "lost", "in_log",
    "margin_ms", "had_been", "rewind_us", "measured_us", "quiet_ms", "still_ms")),
    ("is_waiting", pa.bool_()), ("is_beyond", pa.bool_()), ("problem", pa.string()),
    ("commit_gaps", pa.list_(pa.int64())), ("move_gaps", pa.list_(pa.int64())),
])  # fmt: skip
_READER = pa.struct([
    ("topics", pa.list_(pa.string())), ("has_pattern", pa.bool_()), ("assigned", pa.list_(pa.string())),
])  # fmt: skip
_GROUP_FACTS = pa.schema([
    *_PLACE[:2], *((name, pa.int64()) for name in ("members", "lag", "lag_ms", "last_commit_us")),
    ("is_simple", pa.bool_()), ("lately", pa.list_(pa.int64())), ("readers", pa.list_(_READER)),
])  # fmt: skip

_TOLD = ("status", "since_time", "rule")
_OF_GROUP = (*STATUS.key, "status", "since_time", "lag", "rule", "lag_ms")


class _Partition(NamedTuple):
    """A row of _PARTITIONS."""

    cluster: str
    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    lag: int | None
    lag_ms: int | None
    waits_ms: int | None
    lost: int | None
    in_log: int | None
    margin_ms: int | None
    had_been: int | None
    rewind_us: int | None
    measured_us: int | None
    quiet_ms: int | None
    still_ms: int | None
    is_waiting: bool | None
    is_beyond: bool
    problem: str | None
    commit_gaps: list[int] | None
    move_gaps: list[int] | None


class _Group:
    """A group, and what its partitions come to. Times are in µs since 1970."""

    def __init__(self, row: Row) -> None:
        self.members: int | None = row["members"]
        self.is_simple = bool(row["is_simple"])
        self.last_commit_us: int | None = row["last_commit_us"]
        self.lately_us: Sequence[int] = row["lately"] or ()
        self.lag, self.lag_ms = row["lag"], row["lag_ms"]
        self.read = topics_read(
            Subscription(each["topics"], each["has_pattern"], each["assigned"] or ()) for each in row["readers"] or ()
        )
        self._worst: tuple[tuple[int, bool, int, str, int], Status, str] | None = None
        self._alike: Counter[Status] = Counter()
        self._since_us: dict[Status, int] = {}

    @property
    def is_told(self) -> bool:
        return self._worst is not None or len(self.lately_us) >= REBALANCES

    def judged(self, row: _Partition) -> tuple[Status, int | None, str]:
        """Status, since when, and why, of a partition of the group."""
        is_dated = self.last_commit_us is not None and row.measured_us is not None
        facts = Facts(
            row.committed_offset, row.lag, row.lost, row.in_log, row.is_beyond, row.is_waiting, row.waits_ms,
            row.margin_ms, row.still_ms, row.quiet_ms, row.had_been, self.members, self.is_simple,
            None if self.read is None or not self.members else row.topic in self.read,
            max(0, (row.measured_us or 0) - (self.last_commit_us or 0)) // 1000 if is_dated else None,
            usual_gap_ms(row.commit_gaps) if row.commit_gaps else None,
            usual_gap_ms(row.move_gaps) if row.move_gaps else None,
        )  # fmt: skip
        found = partition_status(facts)
        why = reason(facts, found)
        if found is Status.UNKNOWN and row.problem is not None and row.problem != why:
            why = row.problem if row.lag is None else f"{why}: {row.problem}"
        stands = stands_ms(facts, found)
        since_us = None if stands is None or row.measured_us is None else row.measured_us - stands * 1000
        verdict = found, row.rewind_us if found is Status.REWOUND else since_us, why
        self._add(row, *verdict)
        return verdict

    def _add(self, row: _Partition, found: Status, since_us: int | None, why: str) -> None:
        rank = -1 if found is Status.ABANDONED and self.members else RANKS[found]
        is_committed = row.committed_offset is not None
        place = (row.lag_ms or 0, row.topic, row.partition) if is_committed else (0, "", 0)
        badness = rank, is_committed, *place
        if self._worst is None or badness > self._worst[0]:
            self._worst = badness, found, f"{row.topic}-{row.partition}: {why}"
        self._alike[found] += 1
        if since_us is not None:
            self._since_us[found] = min(since_us, self._since_us.get(found, since_us))

    def columns(self) -> tuple[Status, int | None, int | None, str, int | None]:
        """Those of the group from `status` on. Its rule is that of the partition of its status that has waited longest;
        of those without an offset, of the first.
        """
        worst = Status.OK if self._worst is None else self._worst[1]
        found = group_status(worst, self.members, len(self.lately_us))
        why = []
        if found is not Status.UNSTABLE and self._worst is not None:
            why.append(self._worst[2])
            more = self._alike[worst] - 1
            if more and not self._worst[0][1]:
                why.append(f"{counted(more, 'more partition')} {'is' if more == 1 else 'are'} like it")
        if len(self.lately_us) >= REBALANCES:
            why.append(f"{counted(len(self.lately_us), 'rebalance')} in the last {duration(REBALANCES_MS)}")
        since_us = min(self.lately_us) if found is Status.UNSTABLE else self._since_us.get(worst)
        return found, since_us, self.lag, "; ".join(why), self.lag_ms


def status(
    paces: Rows, lag: Rows, rewinds: Rows, groups: Rows, facts: Rows, *, members: Rows | None = None,
    log_offsets: Rows | None = None,
) -> pa.RecordBatchReader:  # fmt: skip
    """The status at the instant of each cluster's measurement, from rows of the tables with the arguments' names
    (tables.state has `paces` and, as GROUP_FACTS, `facts`). What members are assigned, and no offset is committed of,
    counts for its group; rows of tables.MEMBERS and tables.LOG_OFFSETS tell.
    """
    given = {"lags": lag, "members": empty(MEMBERS) if members is None else members,
             "log_offsets": empty(LOG_OFFSETS) if log_offsets is None else log_offsets}  # fmt: skip
    found = made(_GROUP_FACTS, _GROUPS, {**given, "groups": groups, "facts": facts}, {"rebalances_ms": REBALANCES_MS})
    of_groups = {(row["cluster"], row["group_id"]): _Group(row) for row in found.read_all().to_pylist()}
    patience = {"look_back_ms": LOOK_BACK_MS, "patience_ms": PATIENCE_MS}
    partitions = made(_PARTITION_FACTS, _PARTITIONS, {**given, "paces": paces, "rewinds": rewinds}, patience)
    judged = [_judged(batch, of_groups) for batch in partitions]
    told = {key: group.columns() for key, group in of_groups.items() if group.is_told}
    return pa.Table.from_batches([*judged, _of_groups(told)], STATUS.arrow).to_reader()


def _judged(batch: pa.RecordBatch, of_groups: Mapping[Key, _Group]) -> pa.RecordBatch:
    """The rows of partitions with a committed offset. All count for their groups."""
    rows = map(_Partition._make, zip(*(values(batch[name]) for name in _Partition._fields), strict=True))
    verdicts = [of_groups[row.cluster, row.group_id].judged(row) for row in rows]
    told: Columns = dict(zip(_TOLD, zip(*verdicts, strict=True), strict=False))
    kept = {name: batch[name] for name in STATUS.names if name not in _TOLD}
    return _batch({**kept, **told}).filter(batch["committed_offset"].is_valid())


def _of_groups(told: Mapping[Key, tuple[Any, ...]]) -> pa.RecordBatch:
    rows = zip(*((*key, None, None, *own) for key, own in told.items()), strict=True)
    return _batch(dict(zip(_OF_GROUP, rows, strict=False)))


def _batch(columns: Columns) -> pa.RecordBatch:
    """Rows of tables.STATUS. A column that is not given has none."""
    arrays = [_array(columns.get(field.name, ()), field.type) for field in STATUS.arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=STATUS.arrow)


def _array(column: pa.Array | Sequence[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return pa.array(column, pa.int64()).cast(TIME) if kind == TIME else pa.array(column, kind)
