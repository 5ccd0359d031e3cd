"""Results of several measurements: the trend of lag (columns of tables.LAG), and its history (tables.LAG_HISTORY and
tables.LOG_ENDS).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made, values
from groupkeeper.pipeline.tables import LAG, LAG_HISTORY, LOG_ENDS
from groupkeeper.rules.progress import catch_up_ms, retention_margin_ms, trend

__all__ = ["LEAST_S", "MEASURES", "TREND", "lag_history", "log_ends", "with_trend"]

MEASURES = 11
"""The measures that are kept: of as many minutes, when there is a refresh in each."""

LEAST_S = 30
_MOST_MS = 2**63 - 1
_FACTS = ("lag", "produced_per_s", "consumed_per_s", "waits_ms", "retention_ms")
_BY_RULES = ("trend", "catch_up_ms", "retention_margin_ms")
_MEASURED = pa.schema([
    *(field for field in LAG.arrow if field.name not in _BY_RULES),
    *((name, pa.int64()) for name in ("waits_ms", "retention_ms")),
])  # fmt: skip

TREND = f"""
remembered AS (
    SELECT found.*,
        -- Of what was put ahead, or back, or of a log that was cut, measures begin again.
        coalesce(CASE WHEN jumped IS NULL THEN before.measures END, []) AS known,
        list_filter(known, lambda each: each.log_end_offset IS NOT NULL)[-1] AS latest,
        CASE WHEN coalesce(
            found.committed_offset < latest['committed_offset'] OR log_end_offset < latest['log_end_offset'], false
        ) THEN [] ELSE known END AS kept,
        measured_time IS NOT NULL AND coalesce(
            date_trunc('minute', measured_time) > date_trunc('minute', kept[-1]['time']), true
        ) AS is_due,
        {{  -- of a cluster that was asked, but of which lag is not known, the measurement says so
            'time': measured_time,
            'committed_offset': CASE WHEN lag IS NOT NULL THEN found.committed_offset END,
            'log_end_offset': CASE WHEN lag IS NOT NULL THEN log_end_offset END
        }} AS now,
        CASE WHEN is_due THEN list_append(kept, now)[-{MEASURES}:] ELSE kept END AS all_measures,
        CASE WHEN lag IS NOT NULL THEN
            list_filter(all_measures, lambda each: each.log_end_offset IS NOT NULL)[1] END AS earliest
    FROM found
    LEFT JOIN (SELECT cluster, group_id, topic, partition, measures FROM earlier) AS before
        USING (cluster, group_id, topic, partition)
    LEFT JOIN (SELECT DISTINCT cluster, group_id, topic, partition, true AS jumped FROM jumps) AS jumps
        USING (cluster, group_id, topic, partition)
),
rated AS (
    SELECT *, CASE WHEN ms_between(earliest.time, measured_time) >= {LEAST_S * 1000}
            THEN ms_between(earliest.time, measured_time) / 1000 END AS seconds,
        (log_end_offset - earliest.log_end_offset) / seconds AS produced_per_s,
        (greatest(committed_offset, 0) - greatest(earliest.committed_offset, 0)) / seconds AS consumed_per_s,
        all_measures AS measures
    FROM remembered
)
SELECT *, CASE WHEN is_waiting THEN waits_ms(rated) END AS waits_ms FROM rated
"""
"""Of `found`, rows of tables.LAG without the columns that need more than one measurement, but with `retention_ms` of
their topics; `earlier` are rows of the refresh before, `jumps` have groups and partitions that were put ahead since.
"""


def with_trend(query: str, given: Mapping[str, Rows]) -> pa.RecordBatchReader:
    """tables.LAG of a query whose rows TREND has completed: the rules judge them."""
    found = made(_MEASURED, query, given)
    return pa.RecordBatchReader.from_batches(LAG.arrow, map(_judged, found))


def _judged(found: pa.RecordBatch) -> pa.RecordBatch:
    lags, produced, consumed, waits, kept = (values(found[name]) for name in _FACTS)
    judged = {
        "trend": [None if come is None or read is None or lag is None else trend(come, read, lag)
                  for lag, come, read in zip(lags, produced, consumed, strict=True)],
        "catch_up_ms": [0 if lag == 0 else None if come is None or read is None or lag is None
                        else _known(catch_up_ms(lag, come, read))
                        for lag, come, read in zip(lags, produced, consumed, strict=True)],
        "retention_margin_ms": [None if wait is None else retention_margin_ms(-wait, kept_ms, 0)
                                for wait, kept_ms in zip(waits, kept, strict=True)],
    }  # fmt: skip
    arrays = [pa.array(judged[field.name], field.type) if field.name in judged else found[field.name]
              for field in LAG.arrow]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=LAG.arrow)


def _known(ms: int | None) -> int | None:
    return None if ms is None or ms > _MOST_MS else ms


_HISTORY = """
SELECT *, false AS is_open FROM lags
WHERE measures[-1].time = measured_time AND NOT coalesce(
    measures[-1].committed_offset IS NOT DISTINCT FROM measures[-2].committed_offset
    AND measures[-1].log_end_offset IS NOT DISTINCT FROM measures[-2].log_end_offset
    AND date_trunc('hour', measures[-1].time) = date_trunc('hour', measures[-2].time), false)
"""


def lag_history(lag: Rows, column: str) -> pa.RecordBatchReader:
    """Rows of tables.LAG_HISTORY that rows of tables.LAG add: changed values, and at least one row per hour. They are
    final, as `column` says.
    """
    return made(LAG_HISTORY, _HISTORY.replace("is_open", column), {"lags": lag}, None, pa.field(column, pa.bool_()))


_ENDS = """
WITH measured AS (
    SELECT cluster, topic, partition, measured_time, log_start_offset, last_stable_offset, log_end_offset
    FROM log_offsets
    WHERE topic != $topic AND log_end_offset IS NOT NULL
    UNION ALL
    SELECT cluster, $topic, log_partition, measured_time, NULL, last_stable_offset, log_end_offset
    FROM freshness
    WHERE log_end_offset IS NOT NULL
),
held AS (  -- the last row holds for a minute, and when nothing is new for an hour
    SELECT cluster, topic, partition, now, last, now.measured_time IS NULL OR coalesce(
        date_trunc('minute', last.measured_time) >= date_trunc('minute', now.measured_time)
        OR (date_trunc('hour', last.measured_time) >= date_trunc('hour', now.measured_time)
            AND now.log_start_offset IS NOT DISTINCT FROM last.log_start_offset
            AND now.last_stable_offset IS NOT DISTINCT FROM last.last_stable_offset
            AND now.log_end_offset IS NOT DISTINCT FROM last.log_end_offset), false) AS stays
    FROM measured AS now FULL JOIN last USING (cluster, topic, partition)
)
SELECT cluster, topic, partition, last.measured_time AS measured_time, last.log_start_offset AS log_start_offset,
    last.last_stable_offset AS last_stable_offset, last.log_end_offset AS log_end_offset, stays AS is_last
FROM held
WHERE last.measured_time IS NOT NULL
UNION ALL
SELECT cluster, topic, partition, now.measured_time, now.log_start_offset, now.last_stable_offset, now.log_end_offset,
    true
FROM held
WHERE NOT stays
"""


def log_ends(log_offsets: Rows, freshness: Rows, topic: str, last: Rows, column: str) -> pa.RecordBatchReader:
    """Rows of tables.LOG_ENDS from the measurements of logs (rows of tables.LOG_OFFSETS; and of tables.FRESHNESS, whose
    topic is called `topic`). `column` marks the last row of each partition, with which later measurements are compared;
    `last` has the last rows so far.
    """
    given = {"log_offsets": log_offsets, "freshness": freshness, "last": last}
    query = _ENDS.replace("AS is_last", f"AS {column}")
    return made(LOG_ENDS, query, given, {"topic": topic}, pa.field(column, pa.bool_()))
