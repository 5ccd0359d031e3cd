"""tables.STATUS: how groups are doing, by wall-clock time.

The status depends on how long a record has been waiting while its group stood still. It does not depend on how often a
group commits, on how many records a topic gets, or on the lag at the time of the last commit.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from groupkeeper.operations.lag import WHY_BEYOND
from groupkeeper.pipeline.present.lag import BEYOND
from groupkeeper.pipeline.present.sql import Rows, empty, made
from groupkeeper.pipeline.tables import LOG_OFFSETS, MEMBERS, STATUS

__all__ = ["ORDER", "RULES", "StatusRules", "status"]

ORDER = ("ok", "unknown", "unstable", "lagging", "rewound", "stalled", "stopped", "losing")
"""From best to worst: a group is as its worst partition, and unstable when it rebalances all the time."""


class StatusRules(NamedTuple):
    """Times in milliseconds.

    The patience with a group is `intervals` times its usual time between commits, or between moves ahead, but at least
    `patience_ms` and at most `most_patience_ms`; for a group without members it is `empty_patience_ms`. A group that
    moves on is lagging when a record has waited for `lagging_ms`. Moves back count for `look_back_ms`; a group without
    members that has committed nothing for that long is abandoned and cannot be losing records. A group that has
    rebalanced `rebalances` times in the last `rebalances_ms` is unstable. A commit that is younger than `recent_ms`
    counts as recent.
    """

    lagging_ms: int = 5 * 60 * 1000
    patience_ms: int = 10 * 60 * 1000
    most_patience_ms: int = 3 * 3600 * 1000
    empty_patience_ms: int = 60 * 1000
    intervals: int = 3
    look_back_ms: int = 24 * 3600 * 1000
    rebalances: int = 10
    rebalances_ms: int = 10 * 60 * 1000
    recent_ms: int = 60 * 1000


RULES = StatusRules()
"""The defaults."""

_KNOWN = """
gone_back AS (  -- how far each partition had been before; an offset beyond the log has never been reached
    SELECT cluster, group_id, topic, partition, max(from_offset) AS had_been, max(rewind_time) AS rewind_time
    FROM rewinds JOIN lags USING (cluster, group_id, topic, partition)
    WHERE direction = 'back' AND coalesce(from_offset <= log_end_offset, true)
        AND rewind_time >= later(measured_time, -$look_back_ms)
    GROUP BY ALL
),
usual AS (  -- the median of the last gaps, the lower of two
    SELECT cluster, group_id, topic, partition, moved_time, first_time,
        list_sort(commit_gaps)[(len(commit_gaps) + 1) // 2] * $intervals AS commits_in,
        list_sort(move_gaps)[(len(move_gaps) + 1) // 2] * $intervals AS moves_in
    FROM paces
),
asked AS (
    SELECT lags.*, moved_time, first_time, had_been, rewind_time, members,
        committed_offset > log_end_offset AS is_beyond,
        coalesce(members = 0 AND group_type NOT IN ('simple', 'spark'), false) AS is_empty,
        CASE WHEN is_empty THEN $empty_patience_ms
            ELSE least(greatest(coalesce(commits_in, 0), $patience_ms), $most_patience_ms) END AS commit_patience,
        CASE WHEN is_empty THEN $empty_patience_ms
            ELSE least(greatest(commit_patience, moves_in), $most_patience_ms) END AS move_patience,
        waits_ms(lags) AS waits_ms,
        ms_between(commit_time, measured_time) AS since_commit,
        CASE WHEN since_commit IS NOT NULL THEN least(waits_ms, since_commit) END AS quiet_ms,  -- null: not known
        ms_between(coalesce(moved_time, first_time, commit_time), measured_time) AS since_move,
        CASE WHEN since_move IS NOT NULL THEN least(waits_ms, since_move) END AS stuck_ms
    FROM lags
    LEFT JOIN usual USING (cluster, group_id, topic, partition)
    LEFT JOIN gone_back USING (cluster, group_id, topic, partition)
    LEFT JOIN groups USING (cluster, group_id)
)"""

_VERDICT = f"""
verdicts AS (
    SELECT *, 'the oldest record to read has waited for ' || shown(waits_ms) AS waits,
        CASE WHEN is_empty THEN '; the group has no members' ELSE '' END AS no_members,
        CASE
        WHEN lag IS NULL OR is_beyond THEN 'unknown'
        WHEN committed_offset >= 0 AND committed_offset < log_start_offset
            AND coalesce(members > 0 OR since_commit < $look_back_ms, false) THEN 'losing'
        WHEN lag = 0 THEN 'ok'
        WHEN lag_ms IS NULL THEN 'unknown'
        WHEN waits_ms = 0 THEN 'ok'
        WHEN quiet_ms >= commit_patience THEN 'stopped'
        WHEN stuck_ms >= move_patience THEN 'stalled'
        WHEN committed_offset < had_been THEN 'rewound'
        WHEN waits_ms >= $lagging_ms THEN 'lagging'
        ELSE 'ok' END AS status
    FROM asked
),
judged AS (
    SELECT cluster, group_id, topic, partition, status, lag, lag_ms,
        CASE status
        WHEN 'stopped' THEN later(measured_time, -quiet_ms)
        WHEN 'stalled' THEN later(measured_time, -stuck_ms)
        WHEN 'rewound' THEN rewind_time
        WHEN 'lagging' THEN later(measured_time, $lagging_ms - waits_ms) END AS since_time,
        CASE
        WHEN lag IS NULL THEN coalesce(problem, 'the partition could not be asked')
        WHEN status = 'losing' THEN format('{{:,}}', log_start_offset - committed_offset)
            || ' records were deleted before it read them: it is at offset ' || committed_offset
            || ', the log begins at ' || log_start_offset
        WHEN is_beyond
            THEN '{BEYOND}, ' || log_end_offset || ': {WHY_BEYOND}'
        WHEN lag = 0 THEN 'nothing to read'
        WHEN lag_ms IS NULL THEN concat_ws(': ', 'there are records to read, of unknown age', problem)
        WHEN lag_ms = 0 THEN 'no record waits: what is left is new, or markers only'
        WHEN waits_ms = 0 THEN 'no record waits: what is left was aborted'
        WHEN status = 'stopped' THEN waits || ', and nothing was committed for ' || shown(quiet_ms) || no_members
        WHEN status = 'stalled' THEN waits || ', and commits are of the same offset for ' || shown(stuck_ms)
        WHEN status = 'rewound' THEN 'it had been at offset ' || had_been || ', and is at ' || committed_offset
        WHEN status = 'lagging' THEN waits || CASE WHEN since_commit < $recent_ms THEN '; committed recently'
            WHEN since_commit IS NULL THEN '; the time of its last commit is not known'
            ELSE '; its last commit was ' || shown(since_commit) || ' before' END || no_members
        ELSE waits END AS rule
    FROM verdicts
)"""

_BY_GROUP = """
ranked AS (
    SELECT *, list_position($order, status) AS rank FROM judged
),
worst AS (  -- a group is as its worst partition, and since the earliest of those of that status
    SELECT cluster, group_id, arg_max(ranked, row(rank, coalesce(lag_ms, 0), topic, partition)) AS of_all,
        min({'rank': -rank, 'is_known': since_time IS NOT NULL, 'time': since_time}).time AS since_time,
        sum(lag) AS lag, max(lag_ms) AS lag_ms
    FROM ranked
    GROUP BY cluster, group_id
),
now AS (
    SELECT cluster, max(measured_time) AS now
    FROM (SELECT cluster, measured_time FROM lags UNION ALL SELECT cluster, measured_time FROM log_offsets)
    GROUP BY cluster
),
often AS (  -- groups that rebalance all the time
    SELECT cluster, group_id, list_filter(rebalanced, lambda time: time >= later(now, -$rebalances_ms)) AS lately,
        len(lately) || ' rebalances in the last ' || $rebalances_ms // 60000 || ' min' AS how_often
    FROM facts JOIN now USING (cluster)
    WHERE len(lately) >= $rebalances
),
has AS (
    SELECT DISTINCT cluster, group_id, topic, topic_id, unnest(partitions) AS partition
    FROM (SELECT cluster, group_id, unnest(assigned, recursive := true) FROM members WHERE group_type != 'share')
),
names AS (
    SELECT DISTINCT cluster, topic_id, topic FROM log_offsets WHERE topic_id IS NOT NULL
),
lacking AS (  -- groups whose members are assigned partitions with records, and have committed nothing there
    SELECT cluster, group_id, count(*) AS number, min(topic || '-' || partition) AS example
    FROM (
        SELECT has.cluster, group_id, coalesce(has.topic, names.topic) AS topic, partition
        FROM has LEFT JOIN names ON names.cluster = has.cluster AND names.topic_id = has.topic_id
    )
    ANTI JOIN lags USING (cluster, group_id, topic, partition)
    JOIN log_offsets USING (cluster, topic, partition)
    WHERE NOT is_deleted AND coalesce(log_end_offset > log_start_offset, true)
    GROUP BY ALL
),
groups_judged AS (
    SELECT cluster, group_id, lately IS NOT NULL AND coalesce(of_all.rank, 0) < $unstable AS is_unstable,
        number IS NOT NULL AND coalesce(of_all.rank, 0) < $unknown AS is_lacking,
        of_all.topic || '-' || of_all.partition || ': ' || of_all.rule AS of_partition,
        CASE WHEN is_unstable THEN 'unstable' WHEN is_lacking THEN 'unknown' ELSE of_all.status END AS status,
        CASE WHEN is_unstable THEN list_min(lately) WHEN NOT is_lacking THEN since_time END AS since_time, lag, lag_ms,
        CASE WHEN is_unstable THEN how_often
            WHEN is_lacking THEN example || ': nothing is committed: auto.offset.reset decides where the group begins'
                || CASE number WHEN 1 THEN '' WHEN 2 THEN '; 1 more partition is like it'
                    ELSE '; ' || number - 1 || ' more partitions are like it' END
            ELSE concat_ws('; ', of_partition, how_often) END AS rule
    FROM worst FULL JOIN often USING (cluster, group_id) FULL JOIN lacking USING (cluster, group_id)
)"""


def status(
    paces: Rows, lag: Rows, rewinds: Rows, groups: Rows, facts: Rows, rules: StatusRules = RULES, *,
    members: Rows | None = None, log_offsets: Rows | None = None,
) -> pa.RecordBatchReader:  # fmt: skip
    """The status at the instant of each cluster's measurement, from rows of the tables with the arguments' names
    (tables.state has `paces` and, as GROUP_FACTS, `facts`).

    losing: records were deleted before the group read them · stopped: a record waits, and nothing was committed for as
        long · stalled: the group commits, but always the same offset · rewound: behind an earlier offset, and on its
        way back to it · lagging: the oldest record to read is old, and the group makes progress · unstable (only of
        whole groups): the group rebalances too often. Aborted records do not count as records to read: a consumer of
        committed records need not commit an offset after them. Records of an open transaction count, as it may be
        committed. A group is unknown at best while a partition with records that a member is assigned has no committed
        offset: rows of tables.MEMBERS and tables.LOG_OFFSETS tell.

    Commit times come from the coordinator's clock, a record's time from its producer or broker, the time of the
    measurement from this machine. They are compared without correction, so a clock that is off by a minute moves the
    limits by a minute.
    """
    names = "cluster, group_id, topic, partition, status, since_time, lag, rule, lag_ms"
    query = f"""WITH {", ".join((_KNOWN, _VERDICT, _BY_GROUP))}
    SELECT {names} FROM judged UNION ALL BY NAME SELECT {names.replace("topic, partition, ", "")} FROM groups_judged"""
    given = {"paces": paces, "lags": lag, "rewinds": rewinds, "groups": groups, "facts": facts}
    given |= {"members": empty(MEMBERS) if members is None else members}
    given |= {"log_offsets": empty(LOG_OFFSETS) if log_offsets is None else log_offsets}
    values = {
        **rules._asdict(),
        "order": list(ORDER),
        **{name: ORDER.index(name) + 1 for name in ("unstable", "unknown")},
    }
    return made(STATUS, query, given, values)
