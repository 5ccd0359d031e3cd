"""Every derived table, with its inputs: new rows of history, and tables carried over from the last refresh."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
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
from groupkeeper.pipeline.relations import Rows, loaded, together
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
    """Drops a note."""


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
    """Takes notes about failed requests, and about topics that were created again."""

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

Argument: TypeAlias = Callable[[Any, RefreshContext], Any]
"""An argument of a step's function, from the Driver if clusters are asked, else from Sources."""


@dataclass(frozen=True)
class Read:
    """Rows as an argument. `how`: the method of Sources that gives them."""

    how: str
    table: Table

    def __call__(self, tables: Any, _: RefreshContext) -> Rows:
        rows: Rows = getattr(tables, self.how)(self.table)
        return rows


new, then, before, now = (partial(Read, how) for how in ("new", "then", "before", "now"))


@dataclass(frozen=True)
class Built:
    """As an argument, by table: what could be built of these tables, and of those of these jobs that are replaced."""

    of: Sequence[Table | Job]

    @property
    def tables(self) -> list[Table]:
        whole = [step.table for step in STEPS if step.job in self.of and not step.adds and step.table in TABLES]
        return [each for each in (*self.of, *whole) if isinstance(each, Table) and each is not QUALITY]

    def __call__(self, tables: Sources, _: RefreshContext) -> dict[Table, Rows]:
        return {table: tables.now(table) for table in self.tables if table.name not in tables.failed}


class Step(NamedTuple):
    """A table, and the function that makes it from its arguments."""

    table: Table
    job: Job
    make: Callable[..., Made]
    arguments: Sequence[Argument]
    adds: bool = False
    """Rows are appended; the column OPEN marks provisional ones."""
    is_published: bool = True
    """False: only later steps read the table."""

    def made(self, tables: Driver | Sources, given: RefreshContext) -> Made:
        """The table's rows."""
        return self.make(*(each(tables, given) for each in self.arguments))

    @property
    def reads(self) -> list[Read]:
        """The rows that it is given."""
        found = [[each] if isinstance(each, Read) else map(now, each.tables) for each in self.arguments
                 if isinstance(each, Read | Built)]  # fmt: skip
        return [*chain.from_iterable(found)]


def inputs_of(job: Job) -> list[Read]:
    """The rows that tasks of a job read, besides tables that it builds itself."""
    steps = [step for step in STEPS if step.job is job]
    own = {now(step.table) for step in steps}
    return [read for read in dict.fromkeys(read for step in steps for read in step.reads) if read not in own]


def _tables(tables: Any, _: RefreshContext) -> Any:
    return tables


def _given(_: Any, given: RefreshContext) -> RefreshContext:
    return given


def _clusters(_: Any, given: RefreshContext) -> Clusters:
    return given.clusters


def _note(_: Any, given: RefreshContext) -> Callable[[str], None]:
    return given.note


def _topic(_: Any, given: RefreshContext) -> str:
    """The name of the offsets topic."""
    return next((each.topic for each in given.clusters.instants.values()), OFFSETS_TOPIC)


def _open(*_: Any) -> str:
    return OPEN


def _log_offsets(tables: Driver, given: RefreshContext) -> Made:
    if (count := tables.count(WANTED)) <= FEW:
        return log_offsets(tables.now(WANTED), given.clusters)
    return log_offsets_by_tasks(tables.frame(WANTED), given.clusters, 1 + count // FEW)


def _estimates(tables: Driver) -> Made:
    of = tables.now
    if tables.count(WANTED) <= FEW:
        found = untimed(of(WANTED), of(LOG_OFFSETS))
        topics = found["topic"].unique().to_pylist()
        rows = tables.spark.createDataFrame(found, UNTIMED.ddl) if topics else None
    else:
        rows = untimed_by_tasks(tables.frame(WANTED), tables.frame(LOG_OFFSETS))
        topics = [row.topic for row in rows.select("topic").distinct().collect()]
    if rows is None or not topics:
        return ESTIMATES.arrow.empty_table()
    return estimated(rows, tables.past(COMMITS).where(F.col("topic").isin(topics)))


def _wanted(current_offsets: Rows, members: Rows, given: RefreshContext) -> Made:
    return wanted_of(current_offsets, assigned(members, given.clusters.names))


def _lag(
    current_offsets: Rows, log_offsets: Rows, estimates: Rows, freshness: Rows, then: Rows, topics_then: Rows,
    rewinds: Rows, given: RefreshContext,
) -> Made:  # fmt: skip
    jumps = jumps_ahead(rewinds, given.made_to)
    return lag(current_offsets, log_offsets, estimates, freshness, then=then, topics_then=topics_then, jumps=jumps)


def _owners(of_groups: Rows, topics: Rows, given: RefreshContext) -> Made:
    return together(loaded(of_groups), owners_of_topics(topics, given.owners))


def _quality(
    read: Rows, counts: Mapping[Table, Rows], here: Mapping[Table, Rows], tables: Sources, given: RefreshContext
) -> Made:
    offsets = [Offsets(*row.values()) for row in all_read(read).to_pylist()]
    checks = checks_of_tables([*map(loaded, counts.values()), counts_of(here)], here, tables.failed)
    return quality_rows([*checks_of_offsets(offsets, given.made_to, given.read_to), *checks], given.now_ms)


def rows_of(made: Made) -> pa.Table:
    """The rows, loaded into this process."""
    return made.toArrow() if isinstance(made, DataFrame) else made


STEPS = (
    Step(FRESHNESS, Job.ASKED, freshness, [lambda _, given: given.read_to, _clusters]),
    Step(SHARE_OFFSETS, Job.ASKED, share_offsets, [_clusters, _note]),
    Step(LAST_COMMITS, Job.OFFSETS, last_commits, [new(COMMITS), then(LAST_COMMITS)]),
    Step(GROUP_EVENTS, Job.OFFSETS, group_events,
         [new(GROUP_RECORDS), then(LAST_RECORDS), then(GROUP_FACTS), _open], adds=True),
    Step(LAST_RECORDS, Job.OFFSETS, last_records, [new(GROUP_RECORDS), then(LAST_RECORDS)]),
    Step(GROUP_FACTS, Job.OFFSETS, group_facts, [new(GROUP_RECORDS), now(GROUP_EVENTS), then(GROUP_FACTS)]),
    Step(NEW_MOVES, Job.OFFSETS, moves,
         [new(COMMITS), then(LAST_COMMITS), now(GROUP_EVENTS), then(GROUP_FACTS)], is_published=False),
    Step(PACES, Job.OFFSETS, paces, [new(COMMITS), then(LAST_COMMITS), then(PACES)]),
    Step(CURRENT_OFFSETS, Job.OFFSETS, standing_offsets,
         [now(LAST_COMMITS), lambda _, given: given.queries.offsets()]),
    Step(READERS, Job.OFFSETS, readers, [now(CURRENT_OFFSETS)], is_published=False),
    Step(MEMBERS, Job.OFFSETS, members, [now(LAST_RECORDS)]),
    Step(GROUPS, Job.OFFSETS, groups,
         [now(LAST_RECORDS), now(GROUP_FACTS), now(CURRENT_OFFSETS), lambda _, given: given.queries.names()]),
    Step(MOVES, Job.OFFSETS, last_moves, [then(MOVES), now(NEW_MOVES)]),
    Step(SPANS, Job.OFFSETS, spans, [new(COMMITS), new(GROUP_RECORDS)], is_published=False),
    Step(GROUP_RATES, Job.OFFSETS, rates_of_groups,
         [new(COMMITS), new(GROUP_RECORDS), now(GROUP_EVENTS)], is_published=False),
    Step(OFFSETS_READ, Job.OFFSETS, offsets_read, [new(COMMITS), new(GROUP_RECORDS)], is_published=False),
    Step(NEW_REJECTS, Job.OFFSETS, rejects_in,
         [new(GROUP_RECORDS), lambda _, given: given.now_ms], is_published=False),
    Step(WANTED, Job.OFFSETS, _wanted, [now(CURRENT_OFFSETS), now(MEMBERS), _given], is_published=False),
    Step(COUNTS_OF_OFFSETS, Job.OFFSETS, counts_of, [Built((Job.OFFSETS,))], is_published=False),
    Step(LOG_OFFSETS, Job.ASKED, _log_offsets, [_tables, _given]),
    Step(TOPICS, Job.ASKED, topics, [now(READERS), _clusters, then(TOPICS), _note]),
    Step(ESTIMATES, Job.ASKED, _estimates, [_tables], is_published=False),
    Step(EDGES, Job.LAG, edges, [now(SPANS), now(MEMBERS), now(TOPICS), now(FRESHNESS), then(EDGES)]),
    Step(REWINDS, Job.LAG, rewinds,
         [now(NEW_MOVES), now(MOVES), now(CURRENT_OFFSETS), now(LOG_OFFSETS), _open, lambda _, given: given.changes],
         adds=True),
    Step(LAG, Job.LAG, _lag,
         [now(CURRENT_OFFSETS), now(LOG_OFFSETS), now(ESTIMATES), now(FRESHNESS), then(LAG), then(TOPICS), now(REWINDS),
          _given]),
    Step(LAG_HISTORY, Job.LAG, lag_history, [now(LAG), _open], adds=True),
    Step(RECENT_REWINDS, Job.LAG, recent_rewinds,
         [then(RECENT_REWINDS), now(REWINDS), now(LOG_OFFSETS), lambda _, given: given.made_to,
          lambda _, given: given.now_ms - LOOK_BACK_MS - _CLOCKS_MS]),
    Step(STALE, Job.LAG, stale,
         [now(CURRENT_OFFSETS), now(LOG_OFFSETS), now(LAST_RECORDS), now(MEMBERS), now(GROUPS), now(GROUP_FACTS),
          lambda _, given: StaleLimits(given.now_ms, retentions=given.retentions)]),
    Step(STATUS, Job.LAG, status,
         [now(PACES), now(LAG), now(RECENT_REWINDS), now(GROUPS), now(GROUP_FACTS), now(MEMBERS), now(LOG_OFFSETS),
          lambda _, given: given.queries.paces()]),
    Step(WAITING, Job.LAG, waiting, [now(LAG)], is_published=False),
    Step(OWNED_GROUPS, Job.LAG, owners_of_groups,
         [now(GROUPS), now(TOPICS), now(LAG), lambda _, given: given.owners], is_published=False),
    Step(COUNTS_OF_LAG, Job.LAG, counts_of, [Built((Job.LAG,))], is_published=False),
    Step(TRANSACTIONS, Job.ASKED, transactions, [now(WAITING), _clusters]),
    Step(REJECTS, Job.CLUSTERS, rejects, [now(NEW_REJECTS), before(REJECTS)]),
    Step(RATES, Job.CLUSTERS, rates, [now(GROUP_RATES), then(RATES), _open], adds=True),
    Step(LOG_ENDS, Job.CLUSTERS, log_ends,
         [now(LOG_OFFSETS), now(FRESHNESS), _topic, then(LOG_ENDS), _open], adds=True),
    Step(OWNERS, Job.CLUSTERS, _owners, [now(OWNED_GROUPS), now(TOPICS), _given]),
    Step(QUALITY, Job.CLUSTERS, _quality,
         [now(OFFSETS_READ), Built((COUNTS_OF_OFFSETS, COUNTS_OF_LAG)), Built((Job.ASKED, Job.CLUSTERS)), _tables,
          _given]),
)  # fmt: skip
"""The steps, each after those that it needs; a new table is a line here."""
