"""tables.REJECTS: the records that could not be decoded, and when they were first seen."""

from __future__ import annotations

from groupkeeper.pipeline.tables import GROUP_RECORDS, REJECTS
from groupkeeper.pipeline.transforms.query import Query, Words

__all__ = ["rejects_of"]

_KEY = ", ".join(REJECTS.key)
_OTHERS = [name for name in REJECTS.names if name not in (*REJECTS.key, "first_time")]


def rejects_of(now_ms: int) -> Query:
    """The rejects in `group_records`, merged with the earlier table (`known`): a record in both was seen before."""

    def text(words: Words) -> str:
        renamed = ", ".join(f"{'problem AS reason' if name == 'reason' else name}" for name in _OTHERS)
        names = ", ".join(_OTHERS)
        return f"""
WITH found AS (
    SELECT {_KEY}, {names}, first_time FROM {words.of("known")}
    UNION ALL
    SELECT {_KEY}, {renamed}, {words.time_of(str(now_ms))} FROM {words.of("group_records")} WHERE problem IS NOT NULL
)
SELECT {_KEY}, {", ".join(f"max({name}) AS {name}" for name in _OTHERS)}, min(first_time) AS first_time
FROM found GROUP BY {_KEY}
"""

    return Query(REJECTS, text, {"group_records": GROUP_RECORDS, "known": REJECTS})
