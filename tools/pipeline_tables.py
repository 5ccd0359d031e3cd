"""Writes docs/pipeline-tables.md, the columns of the pipeline's tables, from their schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from pathlib import Path

from groupkeeper.pipeline.jobs.freshness import MOST_BEHIND_MS
from groupkeeper.pipeline.present.stale import StaleLimits
from groupkeeper.pipeline.tables import DECODED, TABLES, Table
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.paces import GAPS
from groupkeeper.rules.status import EMPTY_PATIENCE_MS, LOOK_BACK_MS, MOST_PATIENCE_MS, PATIENCE_MS
from groupkeeper.rules.status import GAPS as USUAL_GAPS
from groupkeeper.rules.words import duration

TARGET = Path(__file__).resolve().parent.parent / "docs" / "pipeline-tables.md"

LIMITS = StaleLimits(now_ms=0)


INTRODUCTION = """\
# The pipeline's tables

`make docs` generates this page from the schemas (`tools/pipeline_tables.py`).

Each table is a parquet dataset at `DIR/<table>/`. Names and types are a contract: a column keeps its meaning, and new
ones come at the end. Every column is nullable in the files; its meaning says when it is null. Times are UTC, in
microseconds.

These columns are explained once. A table has those that its key or "Also" names; where it has a row for one, that row
counts:
"""

SHARED = 3
"""A column that means the same in so many tables is explained once."""

RULES = f"""\
## How they judge

**Tables show only the log.** After compaction, the earliest remaining record of a group does not show that
the group was created or that its members joined then (in groups with one record per member, the member's earliest
remaining record appears as "joined"). A group whose generation or epoch falls was deleted in between. A rebalance of a
classic group is visible when it is complete. The progress of share groups is stored in another topic, from which
`share_offsets` is built: share groups are in `groups`, `members` and `group_events`, but not in `lag` or `status`.

**Removed offsets** (`commits.removed_by`): `deleted` when the offset was too young to expire (counted from the
commit, or from the time the group became empty), or members of a classic group may have read its topic; `expired`
when it was removed within two checks and a minute after it could expire; `unknown` otherwise. The retention and the
interval between checks are the brokers' settings at the time when the tombstone is read (offsets.retention.minutes,
offsets.retention.check.interval.ms). If a cluster does not report them, the run notes this and uses Kafka's defaults:
seven days and 10 minutes.

**Rates** are those of the broker's meters (KIP-496) as far as the log shows them: offsets committed in aborted
transactions are missing, a transaction's offsets count in the minute in which they were written, and offsets deleted
with a topic count as deleted by an operator.

**Now** is one instant for each cluster, `measured_time`. The end of the offsets topic is queried first, the ends of all
other logs right after it, both before Spark reads anything. Records and commits that come later belong to the next
run. So `lag` is the log end at the instant minus the offset committed by then, however long the run takes. If the
history does not reach the instant, `freshness` says by how much and why: an open transaction holds back the records
after it in its partition of `__consumer_offsets`; a damaged or slow cluster is not read to its end. For groups
whose commits are missing for more than {duration(MOST_BEHIND_MS)}, lag and status are unknown.

**Lag in time** (`lag`) is the age of the first record at or after the committed offset: `exact` when that record
was read, `interpolated` between commits of any group for that partition when it could not be read or has no
timestamp.

**Rewinds**: a commit of a lower offset than the one before, also after the offset had been removed. A jump ahead is
reported when the group had no members (a reset; a client that reads without joining the group looks the same). It is
also reported when it ends beyond the log, as long as that offset is the committed one and the log is still that of
the same topic id.

**Clocks.** `log_time` and `commit_time` come from the clock of the group's coordinator. A record's time comes from its
producer (or from its broker, depending on the topic's settings), `measured_time` from the machine that ran the
pipeline. These times are compared without correction: a clock that is off by a minute makes ages wrong by a minute.
An age is never below 0.

**Status**, at the time of the measurement, by [the rules that `serve` and `check` use](serve.md#pages). The tables know
commits, not only offsets, so two more statuses come out, and `stopped` means that nothing was committed, not even the
same offset:

| status | rule |
|---|---|
| `stalled` | a record waits, and all commits had the same offset for as long as the patience |
| `rewound` | behind an offset of the last {duration(LOOK_BACK_MS)}, and on its way back to it |

The patience is {USUAL_GAPS} times the usual time between commits (for `stalled`: between moves), in which half of the
time of the last {GAPS} gaps passes; at least {duration(PATIENCE_MS)} and at most {duration(MOST_PATIENCE_MS)}. It is
{duration(EMPTY_PATIENCE_MS)} for a group without members (but not for groups that never have members: `simple` groups
and queries). Aborted records and markers don't wait. Records of an open transaction do if no record before them waits.
A record whose time is ahead of the clock waits since the measurement that found it first.

**Stale**: a group or offset is `idle` after {LIMITS.idle_days} days without a commit, if the group has no members or
records are unread. An offset in a quiet topic is not idle if the group has members and has read everything.
`topic_deleted` also applies when a topic of that name was created again. `expiring` means within
{duration(LIMITS.expiring_ms)}, by the broker's rules and its offsets.retention.minutes.
"""


def described(table: Table, shared: Set[str]) -> str:
    rows = dict(zip((name for name, _, _ in table.columns), _rows(table), strict=True))
    beside = [f"`{name}`" for name, row in rows.items() if row in shared and name not in table.key]
    lines = [f"## {table.name}", ""]
    lines += [f"One row per {table.one_row_per}. Key: {', '.join(f'`{name}`' for name in table.key)}.", ""]
    lines += [f"Also: {', '.join(beside)}.", ""] if beside else []
    return "\n".join([*lines, *_HEAD, *(row for row in rows.values() if row not in shared)]) + "\n"


_HEAD = ("| column | type | meaning |", "|---|---|---|")


def _rows(table: Table) -> list[str]:
    return [f"| `{name}` | {_cell(ddl_of(kind))} | {_cell(meaning)} |" for name, kind, meaning in table.columns]


def _cell(text: str) -> str:
    return text.replace("`", "").replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def text() -> str:
    """The whole document."""
    tables = (*TABLES, DECODED)
    counts = Counter(row for table in tables for row in _rows(table))
    shared: dict[str, str] = {}
    for row, count in counts.most_common():
        if count >= SHARED:
            shared.setdefault(row.split("`")[1], row)
    head = "\n".join([INTRODUCTION, *_HEAD, *shared.values(), ""])
    return "\n".join([head, *(described(table, frozenset(shared.values())) for table in tables), RULES])


if __name__ == "__main__":
    TARGET.write_text(text())
