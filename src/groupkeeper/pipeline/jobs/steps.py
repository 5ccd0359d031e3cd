"""Every derived table, with its inputs: new rows of history, and tables carried over from the last refresh."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.pipeline.jobs.freshness import freshness
from groupkeeper.pipeline.jobs.log_offsets import FEW, Clusters, log_offsets, log_offsets_by_tasks, wanted_of
from groupkeeper.pipeline.jobs.owners import owners_of_groups, owners_of_topics
from groupkeeper.pipeline.jobs.queries import Queries
from groupkeeper.pipeline.jobs.share_offsets import share_offsets
from groupkeeper.pipeline.jobs.topics import topics
from groupkeeper.pipeline.jobs.transactions import transactions
from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.owners import OwnerRule
from groupkeeper.pipeline.present.changes import read_changes
from groupkeeper.pipeline.present.edges import edges, spans
from groupkeeper.pipeline.present.groups import groups
from groupkeeper.pipeline.present.lag import lag, waiting
from groupkeeper.pipeline.present.members import assigned, members
from groupkeeper.pipeline.present.moved import jumps_ahead, last_moves, moves, recent_rewinds, rewinds
from groupkeeper.pipeline.present.quality import (
    Offsets,
    all_read,
    checks_of_offsets,
    checks_of_tables,
    counts_of,
    offsets_read,
    quality_rows,
)
from groupkeeper.pipeline.present.stale import StaleLimits, stale
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.present.trends import lag_history, log_ends
from groupkeeper.pipeline.relations import Rows, empty, loaded, together
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
    COUNTS_OF_LAG,
    COUNTS_OF_OFFSETS,
    ESTIMATES,
    GROUP_FACTS,
    GROUP_RATES,
    LAST_COMMITS,
    LAST_RECORDS,
    MOVES,
    NEW_MOVES,
    NEW_REJECTS,
    OFFSETS_READ,
    OWNED_GROUPS,
    PACES,
    READERS,
    RECENT_REWINDS,
    SPANS,
    WAITING,
    WANTED,
)
from groupkeeper.pipeline.transforms.estimates import UNTIMED, estimated, untimed, untimed_by_tasks
from groupkeeper.pipeline.transforms.group_events import group_events
from groupkeeper.pipeline.transforms.group_facts import group_facts
from groupkeeper.pipeline.transforms.latest import last_commits, last_records, readers, standing_offsets
from groupkeeper.pipeline.transforms.paces import paces
from groupkeeper.pipeline.transforms.rates import rates, rates_of_groups
from groupkeeper.pipeline.transforms.rejects import rejects, rejects_in
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.rules.status import LOOK_BACK_MS

_CLOCKS_MS = 3_600_000
"""The largest expected difference between the clock of a coordinator and that of this machine."""


def _silent(text: str) -> None:
    """Drops a remark."""


class RefreshContext(NamedTuple):
    """The inputs besides the tables."""

    clusters: Clusters
    """With their state at the tables' instant."""
    retentions: Retentions
    """How long clusters keep offsets."""
    made_to: NextOffsets = MappingProxyType({})
    """Where new rows begin."""
    read_to: NextOffsets = MappingProxyType({})
    """Where new rows end."""
    queries: Queries = Queries()
    """Spark's."""
    owners: Sequence[OwnerRule] = ()
    journals: Sequence[str | ChangeJournal] = ()
    """Journals of groupkeeper, their files, or folders with such files."""
    changes: pa.Table | None = None
    """The changes in the journals, as rows of present.moved.CHANGES; None: there are no journals."""
    at_ms: int | None = None
    """The instant of the tables; None: that of the clusters."""
    note: Callable[[str], None] = _silent
    """Takes remarks about failed requests, and about topics that were created again."""

    @property
    def now_ms(self) -> int:
        """One instant for all clusters: `at_ms`, else the latest measurement."""
        if self.at_ms is not None:
            return self.at_ms
        measured = [each.measured_ms for each in self.clusters.instants.values()]
        return max(measured, default=time.time_ns() // 1_000_000)

    def with_changes(self) -> RefreshContext:
        """Reads the journals, and sets `changes`."""
        if not self.journals:
            return self
        clusters = self.clusters
        ids = {name: each.identity.cluster_id for name, each in clusters.instants.items()}
        found, notes = read_changes(self.journals, ids, clusters.options.privacy)
        for each in notes:
            self.note(each)
        return self._replace(changes=found)

    def for_tasks(self) -> RefreshContext:
        """A copy without addresses, secrets and log ends, which only requests to clusters need."""
        options = self.clusters.options._replace(clusters=(), privacy=None)
        instants = {name: each._replace(logs={}, stable={}) for name, each in self.clusters.instants.items()}
        clusters = self.clusters._replace(options=options, instants=instants, known_names=self.clusters.names)
        return self._replace(clusters=clusters, journals=(), note=_silent, at_ms=self.now_ms)


class Earlier(Protocol):
    """The tables that every step can read."""

    def then(self, table: Table) -> Rows:
        """The last refresh's carried or open rows of the table; all its rows, if the table is replaced."""

    def now(self, table: Table) -> Rows:
        """The table of an earlier step. Raises the error that made that step fail."""


class Sources(Earlier, Protocol):
    """The tables that a step in a task can read."""

    def new(self, table: Table) -> Rows:
        """The rows of COMMITS or GROUP_RECORDS that no refresh has seen."""

    def before(self, table: Table) -> Rows:
        """The table as it was before this refresh, even if all tables are rebuilt."""

    @property
    def failed(self) -> Collection[str]:
        """Names of tables that could not be built."""


class Driver(Earlier, Protocol):
    """The tables that a step in the driver, which asks clusters, can read."""

    @property
    def spark(self) -> SparkSession: ...

    def count(self, table: Table) -> int:
        """The number of rows of an earlier step's table, without loading them."""

    def frame(self, table: Table) -> DataFrame:
        """The table of an earlier step, as a DataFrame for tasks."""

    def past(self, table: Table) -> DataFrame:
        """All rows of COMMITS, for facts that neither a record nor the carried rows have."""


class Job(enum.Enum):
    """A job of Spark that builds some of the tables; its value describes it in Spark's UI."""

    ASKED = "what the clusters answer"
    """Steps of the driver, which asks clusters; tasks of CLUSTERS write their rows."""
    OFFSETS = "refresh: offsets, groups"
    LAG = "refresh: lag, status, rewinds"
    CLUSTERS = "refresh: clusters, rates, quality"
    """Tables whose rows are not of a group: one task builds them. Tasks of the other jobs each take a share of the
    groups.
    """


Made: TypeAlias = DataFrame | pa.Table


class Step(NamedTuple):
    """A table, and the function that makes it, from a Driver if clusters are asked, else from Sources. `adds`: rows are
    appended; the column OPEN marks provisional ones. `is_published`: False: only later steps read the table.
    """

    table: Table
    job: Job
    make: Callable[[Any, RefreshContext], Made]
    adds: bool = False
    is_published: bool = True


class Inputs(NamedTuple):
    """The tables that tasks of a job read, by method of Sources. Tables that the job itself builds are not listed."""

    new: Sequence[Table] = ()
    then: Sequence[Table] = ()
    before: Sequence[Table] = ()
    now: Sequence[Table] = ()


def _log_offsets(tables: Driver, given: RefreshContext) -> Made:
    if (count := tables.count(WANTED)) <= FEW:
        return log_offsets(tables.now(WANTED), given.clusters)
    return log_offsets_by_tasks(tables.frame(WANTED), given.clusters, 1 + count // FEW)


def _rates(tables: Sources, _: RefreshContext) -> pa.Table:
    return rates(loaded(tables.now(GROUP_RATES)), tables.then(RATES), OPEN)


def _rewinds(tables: Sources, given: RefreshContext) -> Made:
    of = tables.now
    known = of(NEW_MOVES), of(MOVES), of(CURRENT_OFFSETS), of(LOG_OFFSETS)
    return rewinds(*known, column=OPEN, changes=given.changes)


def _recent_rewinds(tables: Sources, given: RefreshContext) -> Made:
    since_ms = given.now_ms - LOOK_BACK_MS - _CLOCKS_MS
    of = tables.now
    return recent_rewinds(tables.then(RECENT_REWINDS), of(REWINDS), of(LOG_OFFSETS), given.made_to, since_ms)


def _estimates(tables: Driver, _: RefreshContext) -> Made:
    of = tables.now
    if tables.count(WANTED) <= FEW:
        found = untimed(of(WANTED), of(LOG_OFFSETS))
        topics = found["topic"].unique().to_pylist()
        rows = tables.spark.createDataFrame(found, UNTIMED.ddl) if topics else None
    else:
        rows = untimed_by_tasks(tables.frame(WANTED), tables.frame(LOG_OFFSETS))
        topics = [row.topic for row in rows.select("topic").distinct().collect()]
    if rows is None or not topics:
        return empty(ESTIMATES.arrow)
    return estimated(rows, tables.past(COMMITS).where(F.col("topic").isin(topics)))


def _lag(tables: Sources, given: RefreshContext) -> Made:
    known = tables.now(CURRENT_OFFSETS), tables.now(LOG_OFFSETS), tables.now(ESTIMATES)
    ahead = jumps_ahead(tables.now(REWINDS), given.made_to)
    then = tables.then(LAG), tables.then(TOPICS)
    return lag(*known, tables.now(FRESHNESS), then=then[0], topics_then=then[1], jumps=ahead)


def _log_ends(tables: Sources, given: RefreshContext) -> Made:
    topic = next((each.topic for each in given.clusters.instants.values()), OFFSETS_TOPIC)
    return log_ends(tables.now(LOG_OFFSETS), tables.now(FRESHNESS), topic, tables.then(LOG_ENDS), column=OPEN)


def _stale(tables: Sources, given: RefreshContext) -> Made:
    of = tables.now
    limits = StaleLimits(given.now_ms, retentions=given.retentions)
    return stale(
        of(CURRENT_OFFSETS), of(LOG_OFFSETS), of(LAST_RECORDS), of(MEMBERS), of(GROUPS), of(GROUP_FACTS), limits
    )  # fmt: skip


def _status(tables: Sources, given: RefreshContext) -> Made:
    of = tables.now
    paces = together(loaded(of(PACES)), given.queries.paces())
    given_rows = paces, of(LAG), of(RECENT_REWINDS), of(GROUPS), of(GROUP_FACTS)
    return status(*given_rows, members=of(MEMBERS), log_offsets=of(LOG_OFFSETS))


def _groups(tables: Sources, given: RefreshContext) -> Made:
    of = tables.now
    return groups(of(LAST_RECORDS), of(GROUP_FACTS), of(CURRENT_OFFSETS), given.queries.names())


def _edges(tables: Sources, _: RefreshContext) -> Made:
    of = tables.now
    return edges(of(SPANS), of(MEMBERS), of(TOPICS), of(FRESHNESS), tables.then(EDGES))


def _quality(tables: Sources, given: RefreshContext) -> Made:
    read = all_read(loaded(tables.now(OFFSETS_READ)))
    offsets = [Offsets(*row.values()) for row in read.to_pylist()]
    here = _checked(tables, Job.ASKED, Job.CLUSTERS)
    counts = [tables.now(each) for each in (COUNTS_OF_OFFSETS, COUNTS_OF_LAG) if each.name not in tables.failed]
    checks = checks_of_tables([*map(loaded, counts), counts_of(here)], here, tables.failed)
    return quality_rows([*checks_of_offsets(offsets, given.made_to, given.read_to), *checks], given.now_ms)


def _checked(tables: Sources, *jobs: Job) -> dict[Table, Rows]:
    """The tables that these jobs have built, without those to which rows are added."""
    whole = (step.table for step in STEPS if step.job in jobs and not step.adds and step.table in TABLES)
    return {table: tables.now(table) for table in whole if table is not QUALITY and table.name not in tables.failed}


def rows_of(made: Made) -> pa.Table:
    """The rows, loaded into this process."""
    return made.toArrow() if isinstance(made, DataFrame) else made


STEPS = (
    Step(FRESHNESS, Job.ASKED, lambda _, given: freshness(given.read_to, given.clusters)),
    Step(SHARE_OFFSETS, Job.ASKED, lambda _, given: share_offsets(given.clusters, given.note)),
    Step(LAST_COMMITS, Job.OFFSETS, lambda of, _: last_commits(of.new(COMMITS), of.then(LAST_COMMITS))),
    Step(
        GROUP_EVENTS,
        Job.OFFSETS,
        lambda of, _: group_events(of.new(GROUP_RECORDS), of.then(LAST_RECORDS), of.then(GROUP_FACTS), OPEN),
        adds=True,
    ),
    Step(LAST_RECORDS, Job.OFFSETS, lambda of, _: last_records(of.new(GROUP_RECORDS), of.then(LAST_RECORDS))),
    Step(
        GROUP_FACTS,
        Job.OFFSETS,
        lambda of, _: group_facts(of.new(GROUP_RECORDS), of.now(GROUP_EVENTS), of.then(GROUP_FACTS)),
    ),
    Step(
        NEW_MOVES,
        Job.OFFSETS,
        lambda of, _: moves(of.new(COMMITS), of.then(LAST_COMMITS), of.now(GROUP_EVENTS), of.then(GROUP_FACTS)),
        is_published=False,
    ),
    Step(PACES, Job.OFFSETS, lambda of, _: paces(of.new(COMMITS), of.then(LAST_COMMITS), of.then(PACES))),
    Step(
        CURRENT_OFFSETS, Job.OFFSETS, lambda of, given: standing_offsets(of.now(LAST_COMMITS), given.queries.offsets())
    ),
    Step(READERS, Job.OFFSETS, lambda of, _: readers(of.now(CURRENT_OFFSETS)), is_published=False),
    Step(MEMBERS, Job.OFFSETS, lambda of, _: members(of.now(LAST_RECORDS))),
    Step(GROUPS, Job.OFFSETS, _groups),
    Step(MOVES, Job.OFFSETS, lambda of, _: last_moves(of.then(MOVES), of.now(NEW_MOVES))),
    Step(SPANS, Job.OFFSETS, lambda of, _: spans(of.new(COMMITS), of.new(GROUP_RECORDS)), is_published=False),
    Step(
        GROUP_RATES,
        Job.OFFSETS,
        lambda of, _: rates_of_groups(of.new(COMMITS), of.new(GROUP_RECORDS), of.now(GROUP_EVENTS)),
        is_published=False,
    ),
    Step(
        OFFSETS_READ,
        Job.OFFSETS,
        lambda of, _: offsets_read(of.new(COMMITS), of.new(GROUP_RECORDS)),
        is_published=False,
    ),
    Step(
        NEW_REJECTS, Job.OFFSETS, lambda of, given: rejects_in(of.new(GROUP_RECORDS), given.now_ms), is_published=False
    ),
    Step(
        WANTED,
        Job.OFFSETS,
        lambda of, given: wanted_of(of.now(CURRENT_OFFSETS), assigned(of.now(MEMBERS), given.clusters.names)),
        is_published=False,
    ),
    Step(COUNTS_OF_OFFSETS, Job.OFFSETS, lambda of, _: counts_of(_checked(of, Job.OFFSETS)), is_published=False),
    Step(LOG_OFFSETS, Job.ASKED, _log_offsets),
    Step(TOPICS, Job.ASKED, lambda of, given: topics(of.now(READERS), given.clusters, of.then(TOPICS), given.note)),
    Step(ESTIMATES, Job.ASKED, _estimates, is_published=False),
    Step(EDGES, Job.LAG, _edges),
    Step(REWINDS, Job.LAG, _rewinds, adds=True),
    Step(LAG, Job.LAG, _lag),
    Step(LAG_HISTORY, Job.LAG, lambda of, _: lag_history(of.now(LAG), column=OPEN), adds=True),
    Step(RECENT_REWINDS, Job.LAG, _recent_rewinds),
    Step(STALE, Job.LAG, _stale),
    Step(STATUS, Job.LAG, _status),
    Step(WAITING, Job.LAG, lambda of, _: waiting(of.now(LAG)), is_published=False),
    Step(
        OWNED_GROUPS,
        Job.LAG,
        lambda of, given: owners_of_groups(of.now(GROUPS), of.now(TOPICS), of.now(LAG), given.owners),
        is_published=False,
    ),
    Step(COUNTS_OF_LAG, Job.LAG, lambda of, _: counts_of(_checked(of, Job.LAG)), is_published=False),
    Step(TRANSACTIONS, Job.ASKED, lambda of, given: transactions(of.now(WAITING), given.clusters)),
    Step(REJECTS, Job.CLUSTERS, lambda of, _: rejects(loaded(of.now(NEW_REJECTS)), of.before(REJECTS))),
    Step(RATES, Job.CLUSTERS, _rates, adds=True),
    Step(LOG_ENDS, Job.CLUSTERS, _log_ends, adds=True),
    Step(
        OWNERS,
        Job.CLUSTERS,
        lambda of, given: together(loaded(of.now(OWNED_GROUPS)), owners_of_topics(of.now(TOPICS), given.owners)),
    ),
    Step(QUALITY, Job.CLUSTERS, _quality),
)
"""The steps, each after those that it needs; a new table is a line here."""

INPUTS = {
    Job.OFFSETS: Inputs(
        new=(COMMITS, GROUP_RECORDS), then=(LAST_COMMITS, LAST_RECORDS, GROUP_FACTS, PACES, MOVES)
    ),
    Job.LAG: Inputs(
        then=(LAG, TOPICS, EDGES, RECENT_REWINDS),
        now=(
            SPANS, MEMBERS, TOPICS, FRESHNESS, NEW_MOVES, MOVES, CURRENT_OFFSETS, LOG_OFFSETS, ESTIMATES, LAST_RECORDS,
            GROUPS, GROUP_FACTS, PACES,
        ),
    ),
    Job.CLUSTERS: Inputs(
        then=(RATES, LOG_ENDS), before=(REJECTS,), now=(
            NEW_REJECTS, GROUP_RATES, OFFSETS_READ, OWNED_GROUPS, COUNTS_OF_OFFSETS, COUNTS_OF_LAG,
            *(step.table for step in STEPS if step.job is Job.ASKED and step.is_published),
        ),
    ),
}  # fmt: skip
