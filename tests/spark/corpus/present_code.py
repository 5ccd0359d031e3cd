"""How the present code makes the tables of the corpus: refresh after refresh, each of what is new."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from tests.spark.corpus.fleet import ASKED, INSTANTS, Cut, answers, cuts, decoded, histories, instants

from groupkeeper.pipeline.decode.history import commits, group_records
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.steps import STEPS, RefreshContext, rows_of
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.owners import parse_owners
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, TABLES, Table
from groupkeeper.pipeline.tables.state import CARRIED, LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.history import between
from groupkeeper.pipeline.transforms.tombstones import causes

__all__ = ["tables_of"]

_OWNERS = parse_owners("group:g* team-g\ntopic:t team-t\n* all", "owners")
_HISTORY = (COMMITS, GROUP_RECORDS)


def tables_of(spark: SparkSession) -> list[dict[str, pa.Table]]:
    """By name, for each refresh: whole tables, and what a refresh adds to those that grow."""
    fleet = histories()
    records = decoded(fleet)
    refreshes = Refreshes(spark, commits(records), group_records(records))
    found = []
    before: Cut = {}
    for number, cut in enumerate(cuts(fleet)):
        asked = answers(fleet, cut, number)
        options = parse_options({"kafka.bootstrap.servers": "none:1", "rows": "decoded"})
        clusters = Clusters(options, instants(fleet, number), {} if number != 1 else {"c17": "it does not answer"})
        found.append(refreshes.refresh(RefreshContext(clusters, {}, before, cut, owners=_OWNERS), asked))
        before = cut
    found[0][DECODED.name] = records
    assert len(found) == len(INSTANTS)
    return found


class Refreshes:
    """What the tables' code is given (steps.Driver), in memory."""

    def __init__(self, spark: SparkSession, *history: pa.Table) -> None:
        self.spark = spark
        self._history = dict(zip((table.name for table in _HISTORY), history, strict=True))
        self._new: dict[str, pa.Table] = {}
        self._past: dict[str, list[pa.Table]] = defaultdict(list)
        self._then: dict[str, pa.Table] = {}
        self._now: dict[str, pa.Table] = {}

    def refresh(self, given: RefreshContext, asked: dict[str, pa.Table]) -> dict[str, pa.Table]:
        for table in _HISTORY:
            self._new[table.name] = between(self._history[table.name], given.made_to, given.read_to)
        self._find_causes()
        for table in _HISTORY:
            self._past[table.name].append(self._new[table.name])
        published: dict[str, pa.Table] = {}
        opened: dict[str, pa.Table] = {}
        for step in STEPS:
            name = step.table.name
            whole = asked[name] if step.table in ASKED else rows_of(step.made(self, given))
            self._now[name] = _of(step.table, whole)
            if step.adds:
                opened[name] = _of(step.table, whole.filter(whole[OPEN]))
                published[f"{name}.open"] = opened[name]
                published[name] = _of(step.table, whole.filter(pc.invert(whole[OPEN])))
            elif step.table in TABLES:
                published[name] = self._now[name]
        replaced = [table.name for table in (*CARRIED, *TABLES) if table.name in self._now]
        self._then = {name: self._now[name] for name in replaced} | opened
        return published | self._new

    def _find_causes(self) -> None:
        """As the history's writer tells why offsets were removed."""
        rows = self._new[COMMITS.name]
        last_commits, last_records = self.then(LAST_COMMITS), self.then(LAST_RECORDS)
        told = causes(rows, last_commits, self._new[GROUP_RECORDS.name], last_records, {})
        kept = rows.filter(pc.invert(rows["is_tombstone"]))
        self._new[COMMITS.name] = pa.concat_tables([kept, told.select(COMMITS.names).cast(COMMITS.arrow)])

    def new(self, table: Table) -> pa.Table:
        return self._new[table.name]

    def past(self, table: Table) -> DataFrame:
        return self._frame(table, pa.concat_tables(self._past[table.name]))

    def then(self, table: Table) -> pa.Table:
        return self._then.get(table.name, table.arrow.empty_table())

    before = then

    def now(self, table: Table) -> pa.Table:
        return self._now[table.name]

    failed = ()

    def count(self, table: Table) -> int:
        return len(self.now(table))

    def frame(self, table: Table) -> DataFrame:
        return self._frame(table, self.now(table))

    def _frame(self, table: Table, rows: pa.Table) -> DataFrame:
        return self.spark.createDataFrame(rows if len(rows) else [], table.ddl)


def _of(table: Table, rows: pa.Table) -> pa.Table:
    return rows.select(table.names).cast(table.arrow)
