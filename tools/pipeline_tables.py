"""Writes docs/pipeline-tables.md, the columns of the pipeline's tables, from their schemas."""

from __future__ import annotations

from pathlib import Path

from groupkeeper.pipeline.jobs.freshness import MOST_BEHIND_MS
from groupkeeper.pipeline.present.stale import StaleLimits
from groupkeeper.pipeline.present.status import RULES as STATUS_RULES
from groupkeeper.pipeline.tables import DECODED, TABLES, Table
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.paces import GAPS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pipeline-tables.md"

LIMITS = StaleLimits(now_ms=0)


def _time(milliseconds: int) -> str:
    """In the largest unit that it is a whole number of."""
    for unit, size in (("hour", 3_600_000), ("minute", 60_000)):
        if milliseconds % size == 0:
            number = milliseconds // size
            return f"{number} {unit}{'s' * (number != 1)}"
    return f"{milliseconds / 1000:g} seconds"


INTRODUCTION = """\
# The pipeline's tables

Written by `tools/pipeline_tables.py` from the schemas: `make docs` writes it again.

Each table is a parquet dataset at `DIR/<table>/`. Names and types are a contract: a column keeps its meaning, and new
ones come at the end. Every column can be null in the files; when it is, its meaning says so. Times are UTC, in
microseconds.
"""

RULES = f"""\
## How they judge

**Tables have only what is in the log.** After compaction a group's earliest record that is left doesn't say that the
group was created or its members joined then (of groups with a record for each member, it is the earliest record of
the member that appears as "joined"). A group whose generation or epoch falls has been deleted meanwhile. A rebalance
of a classic group is seen when it is complete. How far a share group is stands in another topic, from which
`share_offsets` is made: it is in `groups`, `members` and `group_events`, but not in `lag` or `status`.

**Removed offsets** (`commits.removed_by`): `deleted` when the offset was too young to expire (counted from the
commit, or from the time the group became empty), or members of a classic group may have read its topic; `expired`
when it went within two checks and a minute after it could expire; `unknown` otherwise. How long offsets are kept and
how often they are checked is what the cluster's brokers say when the tombstone is read (offsets.retention.minutes,
offsets.retention.check.interval.ms); of a cluster that does not tell, which is said, Kafka's seven days and 10 minutes
are taken.

**Rates** are those of the broker's meters (KIP-496) as far as the log shows: what was committed in transactions that
were aborted is missing, a transaction's offsets count in the minute in which they were written, and offsets deleted
with a topic count as deleted by an operator.

**Now** is one instant for each cluster, `measured_time`: how far the offsets topic goes is asked first, how far all
other logs go right after it, both before Spark reads anything. What is committed or written later is for the next
run, so that `lag` is the end of the log then less what was committed by then, however long the run takes. Where the
history does not reach the instant, `freshness` says by how much and why: a transaction that stays open holds back
what comes after it in its partition of `__consumer_offsets`; a damaged or slow cluster is not read to its end. Of
groups whose commits are missing for more than {_time(MOST_BEHIND_MS)}, lag and status are unknown.

**Lag in time** (`lag`) is the age of the first record at or after the committed offset: `exact` when that record
was read, `interpolated` between commits of any group for that partition when it could not be, or has no timestamp.

**Rewinds**: a commit of a lower offset than the one before, also after the offset had been removed. A jump ahead is
told when the group had no members (a reset; who reads without joining looks the same) or, as long as the offset
stands there, when it ends beyond the log, if that is still the log of the time (by the topic's id).

**Clocks.** `log_time` and `commit_time` are of the broker that has the group, the time of a record is its producer's
(or its broker's, as the topic is set), `measured_time` is of the machine that ran the pipeline. They are compared as
they are: a clock that is off by a minute makes ages wrong by a minute. An age is never below 0.

**Status**, at the time of the measurement. How long the oldest record to read has waited decides, together with how
long the group has not committed or not moved on, whichever is shorter. Aborted records do not count: a consumer of
committed records need not commit an offset behind them. Those of an open transaction do, where nothing before them
waits.

| status | rule |
|---|---|
| `ok` | nothing to read, or what there is has not waited long |
| `losing` | records were deleted before it read them: the log begins after its offset; the group is in use (\\*) |
| `stopped` | a record waits, and nothing was committed for as long as the patience |
| `stalled` | a record waits, and the commits that came were of the same offset for as long as the patience |
| `rewound` | behind where it had been in the last {_time(STATUS_RULES.look_back_ms)}, and on its way |
| `lagging` | it commits, but the oldest record to read has waited for {_time(STATUS_RULES.lagging_ms)} |
| `unstable` | {STATUS_RULES.rebalances} rebalances of the group or more in {_time(STATUS_RULES.rebalances_ms)} |
| `unknown` | the log could not be queried, or the age of its records, or the latest commits, are not known |

(\\*) It has members, or has committed in the last {_time(STATUS_RULES.look_back_ms)}.

The patience is {STATUS_RULES.intervals} times the partition's usual time between commits (for `stalled`: between moves)
(the median of the last {GAPS}), at least {_time(STATUS_RULES.patience_ms)} and at most
{_time(STATUS_RULES.most_patience_ms)}; {_time(STATUS_RULES.empty_patience_ms)} for a group whose members are gone
(not for those that never have any: `simple` ones and queries). A group
is as its worst partition. So a topic with a record an hour does not make a group "stopped", nor does a pause after
fast commits, and a reader that died while its lag was small is seen.

**Stale**: `idle` after {LIMITS.idle_days} days without members, or with records unread; a quiet topic whose group is
there and has read everything is not. `topic_deleted` also when a topic of that name was made again. `expiring` within
{_time(LIMITS.expiring_ms)}, as the broker's rules and its offsets.retention.minutes have it.
"""


def described(table: Table) -> str:
    lines = [
        f"## {table.name}",
        "",
        f"One row per {table.one_row_per}. Key: {', '.join(f'`{name}`' for name in table.key)}.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {_cell(ddl_of(kind))} | {_cell(meaning)} |" for name, kind, meaning in table.columns]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("`", "").replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def text() -> str:
    """The whole document."""
    return "\n".join([INTRODUCTION, *map(described, (*TABLES, DECODED)), RULES])


if __name__ == "__main__":
    TARGET.write_text(text())
