"""Every derived table, with its inputs: new rows of history, and tables carried over from the last refresh."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.jobs.freshness import freshness
from groupkeeper.pipeline.jobs.log_offsets import Clusters, log_offsets
from groupkeeper.pipeline.jobs.owners import owners
from groupkeeper.pipeline.jobs.queries import Queries
from groupkeeper.pipeline.jobs.share_offsets import share_offsets
from groupkeeper.pipeline.jobs.topics import topics
from groupkeeper.pipeline.jobs.transactions import transactions
from groupkeeper.pipeline.kafka.options import OFFSETS_TOPIC
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.owners import Rule
from groupkeeper.pipeline.present.changes import read_changes
from groupkeeper.pipeline.present.edges import edges
from groupkeeper.pipeline.present.groups import groups
from groupkeeper.pipeline.present.lag import lag, to_estimate
from groupkeeper.pipeline.present.members import members
from groupkeeper.pipeline.present.moved import jumps_ahead, last_moves, recent_rewinds, rewinds
from groupkeeper.pipeline.present.offsets import readers, standing_offsets
from groupkeeper.pipeline.present.quality import Offsets, checks_of_offsets, checks_of_tables, quality_rows
from groupkeeper.pipeline.present.sql import Rows, copied, empty, of_rows, together
from groupkeeper.pipeline.present.stale import StaleLimits, stale
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.present.trends import lag_history, log_ends
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.ledger import NextOffsets
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    EDGES,
    FRESHNESS,
    GROUP_EVENTS,
    GROUP_RECORDS,
    GROUPS,
    LAG,
    LAG_HISTORY,
    LOG_ENDS,
    LOG_OFFSETS,
    MEMBERS,
    OWNERS,
    QUALITY,
    RATES,
    REJECTS,
    REWINDS,
    SHARE_OFFSETS,
    STALE,
    STATUS,
    TABLES,
    TOPICS,
    TRANSACTIONS,
    Table,
)
from groupkeeper.pipeline.tables.state import (
    ESTIMATES,
    GROUP_FACTS,
    LAST_COMMITS,
    LAST_RECORDS,
    MOVES,
    NEW_MOVES,
    PACES,
    READERS,
    RECENT_REWINDS,
)
from groupkeeper.pipeline.transforms.estimates import estimated
from groupkeeper.pipeline.transforms.group_events import group_events_of
from groupkeeper.pipeline.transforms.group_facts import GROUP_FACTS_OF
from groupkeeper.pipeline.transforms.latest import LAST_COMMITS_OF, LAST_RECORDS_OF
from groupkeeper.pipeline.transforms.moves import MOVES_OF
from groupkeeper.pipeline.transforms.offsets_read import OFFSETS_READ_OF
from groupkeeper.pipeline.transforms.paces import PACES_OF
from groupkeeper.pipeline.transforms.query import Query, of_frames
from groupkeeper.pipeline.transforms.rates import rates_of
from groupkeeper.pipeline.transforms.rejects import rejects_of
from groupkeeper.pipeline.transforms.spans import SPANS_OF
from groupkeeper.rules.status import LOOK_BACK_MS

__all__ = ["STEPS", "Given", "Job", "Made", "Sources", "Step"]

_NOTHING: Mapping[str, Table] = MappingProxyType({})

_CLOCKS_MS = 3_600_000
"""The largest expected difference between a coordinator's clock and this one."""


def _silent(text: str) -> None:
    """Drops a remark."""


class Given(NamedTuple):
    """The input besides the tables: the clusters, their state at the instant of the tables, their retention of offsets,
    queries of Spark, the owners of groups and topics, and journals. New rows are those from `made_to` up to `read_to`.
    """

    clusters: Clusters
    retentions: Retentions
    made_to: NextOffsets = MappingProxyType({})
    read_to: NextOffsets = MappingProxyType({})
    queries: Queries = Queries()
    owners: Sequence[Rule] = ()
    journals: Sequence[str] = ()
    """Files of groupkeeper's journal, and folders of such."""
    changes: pa.Table | None = None
    """What the journals say, as rows of present.moved.CHANGES; None: there are no journals."""
    at_ms: int | None = None
    """The instant; None: that of the clusters."""
    note: Callable[[str], None] = _silent
    """Called with remarks about failed requests, and about topics that are other ones than before."""

    @property
    def now_ms(self) -> int:
        """The instant for uses that need one instant for all clusters."""
        if self.at_ms is not None:
            return self.at_ms
        measured = [each.measured_ms for each in self.clusters.instants.values()]
        return max(measured, default=time.time_ns() // 1_000_000)

    def with_changes(self) -> Given:
        """With the changes that are in the journals now."""
        if not self.journals:
            return self
        clusters = self.clusters
        ids = {name: each.identity.cluster_id for name, each in clusters.instants.items()}
        found, notes = read_changes(self.journals, ids, clusters.options.privacy)
        for each in notes:
            self.note(each)
        return self._replace(changes=found)

    def for_tasks(self) -> Given:
        """What steps need that don't ask clusters: no addresses, no secrets, no ends of logs."""
        options = self.clusters.options._replace(clusters=(), privacy=None)
        instants = {name: each._replace(logs={}, stable={}) for name, each in self.clusters.instants.items()}
        clusters = self.clusters._replace(options=options, instants=instants)
        return self._replace(clusters=clusters, journals=(), note=_silent, at_ms=self.now_ms)


class Sources(Protocol):
    """The inputs of a step: DataFrames in the driver, or rows in the process that builds the table."""

    @property
    def spark(self) -> SparkSession: ...

    @property
    def is_little(self) -> bool:
        """Whether this is a task, which has rows; otherwise Spark's SQL has DataFrames."""

    def new(self, table: Table) -> DataFrame:
        """The rows of COMMITS or GROUP_RECORDS that no refresh has seen."""

    def rows_new(self, table: Table) -> Rows:
        """The same, in a task."""

    def has_new(self, table: Table) -> bool:
        """Whether there may be new rows."""

    def past(self, table: Table) -> DataFrame:
        """All rows of COMMITS, for facts that follow neither from a record nor from carried rows."""

    def then(self, table: Table) -> DataFrame:
        """The carried or open rows of the last refresh."""

    def before(self, table: Table) -> DataFrame:
        """The table before this refresh, also in a rebuild."""

    def now(self, table: Table) -> DataFrame:
        """The table of an earlier step."""

    def rows_then(self, table: Table) -> Rows:
        """As `then`; of tables that are replaced all rows."""

    def rows_before(self, table: Table) -> Rows:
        """As `before`."""

    def rows_now(self, table: Table) -> Rows:
        """As `now`."""

    def made(self, tables: Iterable[Table]) -> dict[Table, Rows]:
        """The same for many tables; tables that could not be built are left out."""


class Job(enum.Enum):
    """A job of Spark that builds some of the tables; its value describes it in Spark's UI."""

    ASKED = "what the clusters answer"
    """By the driver, which asks the clusters; the tasks of CLUSTERS write the rows."""
    OFFSETS = "refresh: offsets, groups"
    LAG = "refresh: lag, status, rewinds"
    CLUSTERS = "refresh: clusters, rates, quality"
    """Tables with rows that are not of a group, so one task builds them. Tasks of other jobs build a share of the
    groups.
    """


Made: TypeAlias = DataFrame | pa.Table | pa.RecordBatchReader


class Step(NamedTuple):
    """A table and how it is built. `is_of_history`: its rows come from new rows of history; Spark's SQL builds them if
    these are many. `adds`: its rows are appended; the column OPEN marks provisional rows. `is_published`: False for a
    table that is only an input of later steps.
    """

    table: Table
    job: Job
    make: Callable[[Sources, Given], Made]
    is_of_history: bool = False
    adds: bool = False
    is_published: bool = True


def _asked(
    tables: Sources, query: Query, *, new: Sequence[Table] = (COMMITS,), before: Mapping[str, Table] = _NOTHING,
    then: Mapping[str, Table] = _NOTHING, now: Mapping[str, Table] = _NOTHING,
) -> Made:  # fmt: skip
    """The result of a query of `new` rows and of earlier and current tables: by a task if there are few new rows,
    otherwise by Spark's SQL.
    """
    new = [table for table in new if tables.has_new(table)]
    if tables.is_little:
        given = {table.name: tables.rows_new(table) for table in new}
        given |= {name: tables.rows_before(table) for name, table in before.items()}
        given |= {name: tables.rows_then(table) for name, table in then.items()}
        return of_rows(query, given | {name: tables.rows_now(table) for name, table in now.items()})
    frames = {table.name: tables.new(table) for table in new}
    frames |= {name: tables.before(table) for name, table in before.items()}
    frames |= {name: tables.then(table) for name, table in then.items()}
    frames |= {name: tables.now(table) for name, table in now.items()}
    return of_frames(query, tables.spark, frames)


def _last_commits(tables: Sources, _: Given) -> Made:
    return _asked(tables, LAST_COMMITS_OF, then={"last_commits": LAST_COMMITS})


def _current_offsets(tables: Sources, given: Given) -> pa.Table:
    return standing_offsets(tables.rows_now(LAST_COMMITS), given.queries.offsets())


def _group_events(tables: Sources, _: Given) -> Made:
    if not tables.has_new(GROUP_RECORDS):
        return empty(GROUP_EVENTS).append_column(OPEN, pa.array([], pa.bool_())).to_reader()
    then = {"last_records": LAST_RECORDS, "facts": GROUP_FACTS}
    return _asked(tables, group_events_of(OPEN), new=(GROUP_RECORDS,), then=then)


def _last_records(tables: Sources, _: Given) -> Made:
    if not tables.has_new(GROUP_RECORDS):
        return copied(LAST_RECORDS, tables.rows_then(LAST_RECORDS))
    return _asked(tables, LAST_RECORDS_OF, new=(GROUP_RECORDS,), then={"last_records": LAST_RECORDS})


def _group_facts(tables: Sources, _: Given) -> Made:
    if not tables.has_new(GROUP_RECORDS):
        return copied(GROUP_FACTS, tables.rows_then(GROUP_FACTS))
    then, now = {"known": GROUP_FACTS}, {"group_events": GROUP_EVENTS}
    return _asked(tables, GROUP_FACTS_OF, new=(GROUP_RECORDS,), then=then, now=now)


def _new_moves(tables: Sources, _: Given) -> Made:
    then = {"last_commits": LAST_COMMITS, "facts": GROUP_FACTS}
    return _asked(tables, MOVES_OF, then=then, now={"group_events": GROUP_EVENTS})


def _paces(tables: Sources, _: Given) -> Made:
    return _asked(tables, PACES_OF, then={"last_commits": LAST_COMMITS, "known": PACES})


def _rates(tables: Sources, _: Given) -> Made:
    return _asked(tables, rates_of(OPEN), then={"known": RATES}, now={"group_events": GROUP_EVENTS})


def _rewinds(tables: Sources, given: Given) -> pa.Table:
    of = tables.rows_now
    known = of(NEW_MOVES), of(MOVES), of(CURRENT_OFFSETS), of(LOG_OFFSETS)
    return rewinds(*known, column=OPEN, changes=given.changes)


def _recent_rewinds(tables: Sources, given: Given) -> pa.Table:
    since_ms = given.now_ms - LOOK_BACK_MS - _CLOCKS_MS
    of = tables.rows_now
    return recent_rewinds(tables.rows_then(RECENT_REWINDS), of(REWINDS), of(LOG_OFFSETS), given.made_to, since_ms)


def _estimates(tables: Sources, _: Given) -> Made:
    of = tables.rows_now
    unmeasured = to_estimate(of(CURRENT_OFFSETS), of(LOG_OFFSETS), of(FRESHNESS))
    if not len(unmeasured):
        return empty(ESTIMATES).to_reader()
    commits = tables.past(COMMITS).where(F.col("topic").isin(unmeasured["topic"].unique().to_pylist()))
    return estimated(tables.spark.createDataFrame(unmeasured), commits)


def _lag(tables: Sources, given: Given) -> pa.RecordBatchReader:
    known = tables.rows_now(CURRENT_OFFSETS), tables.rows_now(LOG_OFFSETS), tables.rows_now(ESTIMATES)
    ahead = jumps_ahead(tables.rows_now(REWINDS), given.made_to)
    then = tables.rows_then(LAG), tables.rows_then(TOPICS)
    return lag(*known, tables.rows_now(FRESHNESS), then=then[0], topics_then=then[1], jumps=ahead)


def _log_ends(tables: Sources, given: Given) -> pa.RecordBatchReader:
    topic = next((each.topic for each in given.clusters.instants.values()), OFFSETS_TOPIC)
    return log_ends(
        tables.rows_now(LOG_OFFSETS), tables.rows_now(FRESHNESS), topic, tables.rows_then(LOG_ENDS), column=OPEN
    )


def _stale(tables: Sources, given: Given) -> pa.Table:
    of = tables.rows_now
    limits = StaleLimits(given.now_ms, retentions=given.retentions)
    return stale(
        of(CURRENT_OFFSETS), of(LOG_OFFSETS), of(LAST_RECORDS), of(MEMBERS), of(GROUPS), of(GROUP_FACTS), limits
    )  # fmt: skip


def _status(tables: Sources, given: Given) -> pa.RecordBatchReader:
    of = tables.rows_now
    paces = together(of(PACES), given.queries.paces())
    given_rows = paces, of(LAG), of(RECENT_REWINDS), of(GROUPS), of(GROUP_FACTS)
    return status(*given_rows, members=of(MEMBERS), log_offsets=of(LOG_OFFSETS))


def _groups(tables: Sources, given: Given) -> pa.Table:
    of = tables.rows_now
    return groups(of(LAST_RECORDS), of(GROUP_FACTS), of(CURRENT_OFFSETS), given.queries.names())


def _edges(tables: Sources, _: Given) -> pa.Table:
    seen = _rows(_asked(tables, SPANS_OF, new=(COMMITS, GROUP_RECORDS)))
    now = tables.rows_now
    return edges(seen, now(MEMBERS), now(TOPICS), now(FRESHNESS), tables.rows_then(EDGES))


def _owners(tables: Sources, given: Given) -> pa.Table:
    return owners(tables.rows_now(GROUPS), tables.rows_now(TOPICS), tables.rows_now(LAG), given.owners)


def _rejects(tables: Sources, given: Given) -> Made:
    if not tables.has_new(GROUP_RECORDS):
        return copied(REJECTS, tables.rows_then(REJECTS))
    return _asked(tables, rejects_of(given.now_ms), new=(GROUP_RECORDS,), before={"known": REJECTS})


def _quality(tables: Sources, given: Given) -> pa.RecordBatchReader:
    read = _rows(_asked(tables, OFFSETS_READ_OF, new=(COMMITS, GROUP_RECORDS)))
    offsets = [Offsets(*row.values()) for row in read.to_pylist()]
    rows = tables.made(step.table for step in STEPS if _is_checked(step))
    found = [*checks_of_offsets(offsets, given.made_to, given.read_to), *checks_of_tables(rows)]
    return quality_rows(found, given.now_ms)


def _is_checked(step: Step) -> bool:
    """Whether all rows of its table are there."""
    return step.is_published and not step.adds and step.table in TABLES and step.table is not QUALITY


def _rows(made: Made) -> pa.Table:
    if isinstance(made, pa.Table):
        return made
    return made.toArrow() if isinstance(made, DataFrame) else made.read_all()


STEPS = (
    Step(FRESHNESS, Job.ASKED, lambda _, given: freshness(given.read_to, given.clusters)),
    Step(SHARE_OFFSETS, Job.ASKED, lambda _, given: share_offsets(given.clusters, given.note)),
    Step(LAST_COMMITS, Job.OFFSETS, _last_commits, is_of_history=True),
    Step(GROUP_EVENTS, Job.OFFSETS, _group_events, is_of_history=True, adds=True),
    Step(LAST_RECORDS, Job.OFFSETS, _last_records, is_of_history=True),
    Step(GROUP_FACTS, Job.OFFSETS, _group_facts, is_of_history=True),
    Step(NEW_MOVES, Job.OFFSETS, _new_moves, is_of_history=True, is_published=False),
    Step(PACES, Job.OFFSETS, _paces, is_of_history=True),
    Step(CURRENT_OFFSETS, Job.OFFSETS, _current_offsets),
    Step(READERS, Job.OFFSETS, lambda tables, _: readers(tables.rows_now(CURRENT_OFFSETS)), is_published=False),
    Step(MEMBERS, Job.OFFSETS, lambda tables, _: members(tables.rows_now(LAST_RECORDS))),
    Step(GROUPS, Job.OFFSETS, _groups),
    Step(MOVES, Job.OFFSETS, lambda tables, _: last_moves(tables.rows_then(MOVES), tables.rows_now(NEW_MOVES))),
    Step(
        LOG_OFFSETS,
        Job.ASKED,
        lambda tables, given: log_offsets(
            tables.spark, tables.rows_now(CURRENT_OFFSETS), tables.rows_now(MEMBERS), given.clusters
        ),
    ),
    Step(
        TOPICS,
        Job.ASKED,
        lambda tables, given: topics(tables.rows_now(READERS), given.clusters, tables.rows_then(TOPICS), given.note),
    ),
    Step(ESTIMATES, Job.ASKED, _estimates, is_published=False),
    Step(EDGES, Job.LAG, _edges, is_of_history=True),
    Step(REWINDS, Job.LAG, _rewinds, adds=True),
    Step(LAG, Job.LAG, _lag),
    Step(LAG_HISTORY, Job.LAG, lambda tables, _: lag_history(tables.rows_now(LAG), column=OPEN), adds=True),
    Step(RECENT_REWINDS, Job.LAG, _recent_rewinds),
    Step(STALE, Job.LAG, _stale),
    Step(STATUS, Job.LAG, _status),
    Step(TRANSACTIONS, Job.ASKED, lambda tables, given: transactions(tables.rows_now(LAG), given.clusters)),
    Step(REJECTS, Job.CLUSTERS, _rejects, is_of_history=True),
    Step(RATES, Job.CLUSTERS, _rates, is_of_history=True, adds=True),
    Step(LOG_ENDS, Job.CLUSTERS, _log_ends, adds=True),
    Step(OWNERS, Job.CLUSTERS, _owners),
    Step(QUALITY, Job.CLUSTERS, _quality, is_of_history=True),
)
"""In an order in which each has what it needs; a new table is a line here."""
