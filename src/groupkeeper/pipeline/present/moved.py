"""tables.REWINDS and related rows: commits that move a group in a way that reading does not explain, among the moves
that transforms.moves found in the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.tables import REWINDS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.moves import IS_TOLD

__all__ = ["CHANGES", "jumps_ahead", "last_moves", "places", "recent_rewinds", "rewinds", "told_by"]

_Offsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

_CLOCKS_MS = 3_600_000
"""The largest expected difference between the clocks of a coordinator and of who changes offsets, with the time that
it takes to commit a large plan.
"""

_TOLD = ("change_id", "change_kind", "changed_by", "changed_on", "command", "undoes")

CHANGES = pa.schema([
    *(REWINDS.arrow.field(name) for name in (*_TOLD, "group_id", "topic", "partition", "from_offset", "to_offset")),
    ("cluster", pa.string()), ("change_time", TIME),
])  # fmt: skip
"""Changes of offsets by groupkeeper, from its journals. `from_offset` null: there was none; `cluster` null: it is not
known which one it was.
"""

_LAST = """
SELECT * FROM (SELECT * FROM earlier UNION ALL BY NAME SELECT * FROM moves)
QUALIFY row_number() OVER (PARTITION BY cluster, group_id, topic, partition ORDER BY log_offset DESC) = 1
"""


def last_moves(then: Rows, moves: Rows) -> pa.RecordBatchReader:
    """The last move of each key, from rows of tables.state.MOVES."""
    return made(MOVES, _LAST, {"earlier": then, "moves": moves})


_REWINDS = f"""
WITH found AS (
    SELECT *, false AS is_open FROM moves WHERE {IS_TOLD}
    UNION ALL BY NAME
    SELECT last.*, true AS is_open  -- ahead, beyond the end of the log, and standing there
    FROM last
    JOIN current_offsets AS own ON own.cluster = last.cluster AND own.group_id = last.group_id
        AND own.topic = last.topic AND own.partition = last.partition AND own.committed_offset = last.to_offset
    JOIN log_offsets AS logs ON logs.cluster = last.cluster AND logs.topic = last.topic
        AND logs.partition = last.partition
    WHERE NOT ({IS_TOLD}) AND last.to_offset > log_end_offset
        AND coalesce(last.topic_id = logs.topic_id, true)  -- an earlier topic's offsets tell nothing of this log
)
SELECT *, try_cast(from_offset::HUGEINT - to_offset AS BIGINT) AS records,
    CASE WHEN to_offset < from_offset THEN 'back' ELSE 'ahead' END AS direction, NONE
FROM found
""".replace("NONE", ", ".join(f"NULL AS {name}" for name in _TOLD))


_BY = f"""
WITH pairs AS (  -- of a move the change that is closest in time, and of that only the move that is closest to it
    SELECT rewinds.cluster, log_partition, log_offset, {", ".join(f"changes.{name}" for name in _TOLD)}
    FROM rewinds JOIN changes USING (group_id, topic, partition, to_offset)
    WHERE rewinds.change_id IS NULL AND coalesce(changes.from_offset = rewinds.from_offset, true)
        AND coalesce(changes.cluster = rewinds.cluster, true)
        AND abs(ms_between(change_time, rewind_time)) <= {_CLOCKS_MS}
    QUALIFY row_number() OVER (
        PARTITION BY rewinds.cluster, log_partition, log_offset ORDER BY abs(ms_between(change_time, rewind_time))
    ) = 1 AND row_number() OVER (
        PARTITION BY changes.change_id, group_id, topic, partition ORDER BY abs(ms_between(change_time, rewind_time))
    ) = 1
)
SELECT rewinds.* REPLACE ({", ".join(f"coalesce(rewinds.{name}, pairs.{name}) AS {name}" for name in _TOLD)})
FROM rewinds LEFT JOIN pairs ON pairs.cluster = rewinds.cluster AND pairs.log_partition = rewinds.log_partition
    AND pairs.log_offset = rewinds.log_offset
"""


def told_by(rewinds: Rows, changes: pa.Table, *more: pa.Field) -> pa.RecordBatchReader:
    """The same rows of tables.REWINDS, and `more` columns that they have, with what `changes` (CHANGES) know of them:
    a change of the same offset, from and to the same, at about that time. What is known stays.
    """
    return made(REWINDS, _BY, {"rewinds": rewinds, "changes": changes}, None, *more)


def rewinds(
    moves: Rows, last: Rows, current_offsets: Rows, log_offsets: Rows, column: str, changes: pa.Table | None = None
) -> pa.RecordBatchReader:
    """Of the new `moves` those back, and the jumps ahead of groups without members, which no reader made: a reset; a
    consumer that reads without joining looks the same. Of the `last` moves of each offset those beyond the log, which
    are told as long as they stand there, as `column` says.

    An offset that was removed and then committed at a lower value counts too; an offset of another topic with that name
    does not. `changes`: as for `told_by`.
    """
    given = {"moves": moves, "last": last, "current_offsets": current_offsets, "log_offsets": log_offsets}
    more = pa.field(column, pa.bool_())
    found = made(REWINDS, _REWINDS.replace("is_open", column), given, None, more)
    return found if changes is None or not len(changes) else told_by(found.read_all(), changes, more)


_NEW = """
SELECT rewinds.*
FROM rewinds LEFT JOIN made_to USING (cluster, log_partition)
WHERE log_offset >= coalesce(next_offset, 0)
"""


def recent_rewinds(
    then: Rows, rewinds: Rows, log_offsets: Rows, made_to: _Offsets, since_ms: int
) -> pa.RecordBatchReader:
    """The moves back since a time, of those of before and of `rewinds`, of which those from `made_to` on are new; none
    of a topic that was deleted, where `log_offsets` has another one of its name.
    """
    query = f"""
    WITH ids AS (
        SELECT cluster, topic, any_value(topic_id) AS id_now FROM log_offsets GROUP BY cluster, topic
    )
    SELECT * FROM (SELECT * FROM earlier UNION ALL BY NAME ({_NEW})) LEFT JOIN ids USING (cluster, topic)
    WHERE direction = 'back' AND rewind_time >= $since AND coalesce(topic_id = id_now, true)
    """
    given = {"earlier": then, "rewinds": rewinds, "log_offsets": log_offsets, "made_to": places(made_to)}
    return made(REWINDS, query, given, {"since": datetime(1970, 1, 1) + timedelta(milliseconds=since_ms)})


def jumps_ahead(rewinds: Rows, made_to: _Offsets) -> pa.RecordBatchReader:
    """The new moves ahead."""
    query = f"SELECT * FROM ({_NEW}) WHERE direction = 'ahead'"
    return made(REWINDS, query, {"rewinds": rewinds, "made_to": places(made_to)})


def places(offsets: _Offsets) -> pa.Table:
    """Offsets as rows of `cluster`, `log_partition` and `next_offset`."""
    rows = [(name, number, offset) for name, own in offsets.items() for number, offset in own.items()]
    names, numbers, nexts = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({
        "cluster": pa.array(names, pa.string()), "log_partition": pa.array(numbers, pa.int32()),
        "next_offset": pa.array(nexts, pa.int64()),
    })  # fmt: skip
