"""tables.LOG_OFFSETS: the ends of logs at the instant, and the records at committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.kafka.instants import Instant, Instants, LogEnds
from groupkeeper.pipeline.kafka.measuring import LogMeasure, measure
from groupkeeper.pipeline.kafka.options import ClusterOptions, ReadOptions
from groupkeeper.pipeline.relations import Rows, keys, loaded, matches, numbers, together, unnested
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, LOG_OFFSETS
from groupkeeper.pipeline.tables.state import WANTED

FEW = 10_000
"""The driver looks up at most this many offsets; more are looked up by tasks, about as many by each."""


class Clusters(NamedTuple):
    """The clusters by their names in the rows, their state at the instant, and why others could not be queried."""

    options: ReadOptions
    instants: Instants
    failed: Mapping[str, str]
    known_names: pa.Table | None = None
    """Topics of the clusters for `names` where the instants have no logs, as in tasks."""

    @property
    def names(self) -> pa.Table:
        """The names of topics by their ids."""
        if self.known_names is not None:
            return self.known_names
        found = {
            (cluster, log.topic_id, tp.topic)
            for cluster, instant in self.instants.items()
            for tp, log in instant.logs.items()
            if isinstance(log, LogEnds)
        }
        return pa.Table.from_pylist([dict(zip(_NAMES.names, each, strict=True)) for each in found], _NAMES)

    @property
    def measured(self) -> dict[str, tuple[ClusterOptions, Instant]]:
        """The clusters that have an instant, with it, by name."""
        return {
            each.name: (each, self.instants[each.name])
            for each in self.options.clusters
            if each.name is not None and each.name in self.instants
        }

    def why_unmeasured(self, name: str) -> str:
        """Why a cluster has no instant."""
        return self.failed.get(name, f"cluster {name} is not among the given ones")


_NAMES = pa.schema([("cluster", pa.string()), ("topic_id", pa.string()), ("topic", pa.string())])


def log_offsets(wanted: Rows, clusters: Clusters) -> pa.Table:
    """Rows of tables.LOG_OFFSETS for rows of tables.state.WANTED. All clusters are queried at the same time."""
    rows = loaded(wanted, WANTED.names).group_by(list(LOG_OFFSETS.key)).aggregate([("committed_offset", "distinct")])
    by_cluster: dict[str, dict[TopicPartition, Sequence[int]]] = {}
    for row in rows.to_pylist():
        tp = TopicPartition(row["topic"], row["partition"])
        by_cluster.setdefault(row["cluster"], {})[tp] = row["committed_offset_distinct"]
    known = clusters.measured
    measures = {name: LogMeasure(*known[name], own) for name, own in by_cluster.items() if name in known}
    told = dict(zip(measures, measure([*measures.values()]), strict=True))
    for name in by_cluster.keys() - known.keys():
        why = clusters.why_unmeasured(name)
        told[name] = {tp: {"is_deleted": False, "problem": why} for tp in by_cluster[name]}
    found = [{"cluster": name, "topic": tp.topic, "partition": tp.partition, **row}
             for name, own in told.items() for tp, row in own.items()]  # fmt: skip
    return pa.Table.from_pylist(found, LOG_OFFSETS.arrow)


def log_offsets_by_tasks(wanted: DataFrame, clusters: Clusters, tasks: int) -> DataFrame:
    """As `log_offsets`, by this many tasks. Each use of the DataFrame may ask the clusters again: write or cache it."""

    def asked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches([*batches], WANTED.arrow)
        yield from log_offsets(rows, clusters).to_batches()

    return wanted.repartition(tasks, *LOG_OFFSETS.key).mapInArrow(asked, LOG_OFFSETS.ddl)


def wanted_of(current_offsets: Rows, assigned_topics: pa.Table) -> pa.Table:
    """The partitions and offsets to look up: rows of tables.state.WANTED from rows of tables.CURRENT_OFFSETS, and from
    the partitions that members are assigned (present.members.assigned).
    """
    committed = loaded(current_offsets, [*CURRENT_OFFSETS.key, "committed_offset"])
    theirs = unnested(assigned_topics, "partitions")
    theirs = theirs.rename_columns({"partitions": "partition"})
    own, known = keys(CURRENT_OFFSETS.key, theirs, committed)
    # Where nothing is committed, −1 looks up the log's first record: is there any?
    is_lacking = (matches(own, known) < 0) & numbers(pc.not_equal(theirs["group_type"], "share"))
    theirs = theirs.append_column("committed_offset", pa.array(np.where(is_lacking, -1, 0), mask=~is_lacking))
    whole = together(committed, theirs)
    return whole.filter(whole["topic"].is_valid()).group_by(WANTED.names).aggregate([]).select(WANTED.names)
