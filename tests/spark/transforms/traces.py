"""Traces written by hand: what a coordinator writes to its log, with the time of each record in seconds."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from groupkeeper.pipeline.present.moved import last_moves, moves, rewinds
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_RECORDS, LOG_OFFSETS, Table
from groupkeeper.pipeline.tables.state import GROUP_FACTS, LAST_COMMITS, LAST_RECORDS, MOVES, PACES
from groupkeeper.pipeline.transforms.group_events import group_events
from groupkeeper.pipeline.transforms.group_facts import group_facts
from groupkeeper.pipeline.transforms.latest import last_commits, standing_offsets
from groupkeeper.pipeline.transforms.paces import paces

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86400


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def seconds_of(time: datetime | None) -> float | None:
    """Of a time, which is local if Spark gave it."""
    return None if time is None else time.timestamp() - BEGIN.timestamp()


class Trace:
    """Records in the order in which they are added."""

    def __init__(self, group_id: str = "g", topic: str = "t", cluster: str = "c") -> None:
        self.group_id, self.topic, self.cluster = group_id, topic, cluster
        self.commit_rows: list[dict[str, Any]] = []
        self.group_rows: list[dict[str, Any]] = []
        self._next_offset = 0

    def _place(self, seconds: float, group_id: str | None) -> dict[str, Any]:
        self._next_offset += 1
        return {
            "cluster": self.cluster, "log_partition": 0, "log_offset": self._next_offset, "log_time": at(seconds),
            "group_id": self.group_id if group_id is None else group_id, "is_tombstone": False,
        }  # fmt: skip

    def commit(
        self, seconds: float, offset: int | None, *, partition: int = 0, group_id: str | None = None, **columns: Any
    ) -> int:
        """An offset, None: its tombstone."""
        row = self._place(seconds, group_id) | {"topic": self.topic, "partition": partition}
        row |= {"is_transactional": "producer_id" in columns}
        if offset is None:
            row |= {"is_tombstone": True, "removed_by": "unknown"}
        else:
            row |= {"committed_offset": offset, "commit_time": at(seconds), "metadata": ""}
        self.commit_rows.append(row | columns)
        return self._next_offset

    def group(
        self, seconds: float, generation: int, members: Iterable[str] = (), *, topics: Sequence[str] = ("t",),
        group_id: str | None = None, **columns: Any,
    ) -> int:  # fmt: skip
        """A classic group's record. A member is called member or instance=member."""
        people = [name.rpartition("=")[::2] for name in members]
        roster = [
            {
                "member_id": member_id, "instance_id": instance_id or None, "client_id": "app", "client_host": "/h",
                "rebalance_timeout_ms": 60000, "subscribed_topics": list(topics),
                "assigned": [{"topic": topics[0], "partitions": [0]}],
            }
            for instance_id, member_id in people
        ]  # fmt: skip
        row = {
            "record_name": "GroupMetadata", "group_type": "classic", "protocol_type": "consumer", "protocol": "range",
            "generation": generation, "members": roster, "state_timestamp_ms": ms(seconds),
        }  # fmt: skip
        self.group_rows.append(self._place(seconds, group_id) | row | columns)
        return self._next_offset

    def record(
        self, seconds: float, name: str, *, gone: bool = False, group_id: str | None = None, **columns: Any
    ) -> int:
        """A record of another group, or any tombstone."""
        group_type = {"Cons": "consumer", "Shar": "share", "Stre": "streams", "EndT": None}.get(name[:4], "classic")
        row = {"record_name": name, "group_type": group_type, "is_tombstone": gone}
        self.group_rows.append(self._place(seconds, group_id) | row | columns)
        return self._next_offset

    def commits(self) -> pa.Table:
        return table_of(COMMITS, self.commit_rows)

    def group_records(self) -> pa.Table:
        return table_of(GROUP_RECORDS, self.group_rows)


def join(trace: Trace, seconds: float, member_id: str, epoch: int, prefix: str = "Consumer", **columns: Any) -> None:
    """What the coordinator writes when a member comes: itself, the group's epoch, the targets, what it has."""
    given: dict[str, Any] = {
        "client_id": "app",
        "client_host": "/h",
        "rebalance_timeout_ms": 60000,
        "subscribed_topics": ["t"],
    }
    trace.record(seconds, f"{prefix}GroupMemberMetadata", member_id=member_id, **(given | columns))
    trace.record(seconds, f"{prefix}GroupMetadata", group_epoch=epoch)
    target = [{"topic_id": "x", "partitions": [0]}]
    trace.record(seconds, f"{prefix}GroupTargetAssignmentMember", member_id=member_id, assigned=target)
    trace.record(
        seconds, f"{prefix}GroupTargetAssignmentMetadata", assignment_epoch=epoch, state_timestamp_ms=ms(seconds)
    )
    trace.record(
        seconds, f"{prefix}GroupCurrentMemberAssignment", member_id=member_id, member_epoch=epoch,
        member_state="STABLE", assigned=target,
    )  # fmt: skip


def leave(trace: Trace, seconds: float, member_id: str, epoch: int, prefix: str = "Consumer") -> None:
    for name in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
        trace.record(seconds, f"{prefix}Group{name}", gone=True, member_id=member_id)
    trace.record(seconds, f"{prefix}GroupMetadata", group_epoch=epoch)


def table_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of a table; columns that a row lacks are null."""
    return pa.Table.from_pylist([dict(row) for row in rows], table.arrow)


def listed(rows: pa.Table) -> list[Any]:
    """The rows, with their columns as attributes."""
    return [SimpleNamespace(**row) for row in rows.to_pylist()]


def frame(spark: SparkSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The same as Spark's."""
    return spark.createDataFrame([tuple(row.get(name) for name in table.names) for row in rows], table.ddl)


def there(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows of this process as Spark's."""
    return spark.createDataFrame(rows if len(rows) else [], from_arrow_schema(rows.schema))


def events_of(group_records: pa.Table) -> pa.Table:
    """tables.GROUP_EVENTS of all rows of tables.GROUP_RECORDS."""
    found = group_events(group_records, LAST_RECORDS.arrow.empty_table(), GROUP_FACTS.arrow.empty_table(), OPEN)
    assert not any(found[OPEN].to_pylist())
    return found.drop_columns([OPEN])


def facts_of(group_records: pa.Table, events: pa.Table) -> pa.Table:
    return group_facts(group_records, events, GROUP_FACTS.arrow.empty_table())


def moves_of(commits: pa.Table, events: pa.Table) -> pa.Table:
    return moves(commits, LAST_COMMITS.arrow.empty_table(), events, GROUP_FACTS.arrow.empty_table())


def paces_of(commits: pa.Table) -> pa.Table:
    return paces(commits, LAST_COMMITS.arrow.empty_table(), PACES.arrow.empty_table())


def rewinds_of(found: pa.Table, *known: pa.Table) -> pa.Table:
    """Rows of tables.REWINDS of rows of tables.state.MOVES; known are current offsets and logs."""
    last = last_moves(MOVES.arrow.empty_table(), found)
    current, logs = known or [table.arrow.empty_table() for table in (CURRENT_OFFSETS, LOG_OFFSETS)]
    return rewinds(found, last, current, logs, OPEN).drop_columns([OPEN])


def current_offsets(commits: pa.Table) -> pa.Table:
    """tables.CURRENT_OFFSETS of all rows of tables.COMMITS."""
    none = CURRENT_OFFSETS.arrow.empty_table()
    return standing_offsets(last_commits(commits, COMMITS.arrow.empty_table()), none)


def log_offsets(seconds: float, logs: Mapping[int, tuple[int, int]], **columns: Any) -> pa.Table:
    """Start and end of the partitions of topic t, with what else is known of all of them."""
    rows = [
        {
            "cluster": "c", "topic": "t", "partition": partition, "log_start_offset": start, "log_end_offset": end,
            "last_stable_offset": end, "records": [], "measured_time": at(seconds), "is_deleted": False, **columns,
        }
        for partition, (start, end) in logs.items()
    ]  # fmt: skip
    return table_of(LOG_OFFSETS, rows)


def lag_row(
    seconds: float, committed: int, end: int, lag_ms: int | None, committed_at: float, **columns: Any
) -> dict[str, Any]:
    """A row of tables.LAG as it is measured at that time."""
    stable, committed_ms = columns.get("last_stable_offset", end), columns.get("committed_lag_ms", lag_ms)
    waits_ms = committed_ms if committed_ms or stable == end else lag_ms
    return {
        "cluster": "c", "group_id": "g", "topic": "t", "partition": 0, "committed_offset": committed,
        "log_start_offset": 0, "last_stable_offset": end, "log_end_offset": end, "lag": max(0, end - committed),
        "committed_lag": max(0, end - committed), "lag_ms": lag_ms, "lag_basis": "exact",
        "is_waiting": None if waits_ms is None else waits_ms > 0,
        "commit_time": at(committed_at), "measured_time": at(seconds), **columns,
    }  # fmt: skip
