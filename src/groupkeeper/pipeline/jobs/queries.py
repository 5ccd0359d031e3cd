"""Queries of Structured Streaming shown as groups: rows from their checkpoints beside rows from the offsets topics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import result_of
from groupkeeper.pipeline.checkpoints.committing import metadata_of
from groupkeeper.pipeline.checkpoints.queries import Checkpoint, Query, read_queries
from groupkeeper.pipeline.jobs.watch import Problem
from groupkeeper.pipeline.kafka.instants import Instants
from groupkeeper.pipeline.kafka.options import ClusterOptions, ReadOptions
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, GROUPS
from groupkeeper.pipeline.tables.state import PACES
from groupkeeper.pipeline.transforms.paces import GAPS
from groupkeeper.protocol.errors import KafkaError

_KEY = pa.schema([GROUPS.arrow.field(name) for name in GROUPS.key])


class Queries(NamedTuple):
    """Queries by the cluster that they read."""

    by_cluster: Mapping[str, Sequence[Query]] = {}

    def __bool__(self) -> bool:
        return any(self.by_cluster.values())

    def state(self) -> object:
        """A value that changes when a query makes progress."""
        return [(name, each.name, each.batch_id, dict(each.offsets)) for name, each in self._each()]

    def offsets(self) -> pa.Table:
        """Rows of tables.CURRENT_OFFSETS."""
        rows = [
            {
                "cluster": cluster, "group_id": query.name, "topic": tp.topic, "partition": tp.partition,
                "committed_offset": offset, "metadata": metadata_of(query.query_id, query.batch_id),
                "commit_time": query.done_ms * 1000,
            }
            for cluster, query in self._each()
            for tp, offset in query.offsets.items()
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, CURRENT_OFFSETS.arrow)

    def only(self, names: Collection[str]) -> Queries:
        """The queries with these names."""
        return Queries(
            {cluster: [each for each in own if each.name in names] for cluster, own in self.by_cluster.items()}
        )

    def names(self) -> pa.Table:
        """A row for each query, with the key of tables.GROUPS."""
        rows = [{"cluster": cluster, "group_id": query.name} for cluster, query in self._each()]
        return pa.Table.from_pylist(rows, _KEY)

    def paces(self) -> pa.Table:
        """Rows of tables.state.PACES; Spark runs a batch whenever there is something to read."""
        rows = []
        for cluster, query in self._each():
            times = query.earlier_ms or (query.done_ms,)
            gaps = [later - earlier for earlier, later in pairwise(times)][-GAPS:]
            common = {
                "cluster": cluster, "group_id": query.name, "first_time": times[0] * 1000,
                "moved_time": query.done_ms * 1000, "commit_gaps": gaps, "move_gaps": gaps,
            }  # fmt: skip
            rows += [{**common, "topic": tp.topic, "partition": tp.partition} for tp in query.offsets]
        return pa.Table.from_pylist(rows, PACES.arrow)

    def _each(self) -> Iterator[tuple[str, Query]]:
        return ((name, query) for name, own in self.by_cluster.items() for query in own)


def cluster_for(checkpoint: Checkpoint, options: ReadOptions) -> ClusterOptions | None:
    """The cluster of a checkpoint; None: it is not in the options, or it was not given and there are several
    clusters.
    """
    if checkpoint.cluster is None:
        return options.clusters[0] if len(options.clusters) == 1 else None
    return next((each for each in options.clusters if each.name == checkpoint.cluster), None)


def find_queries(
    spark: SparkSession, checkpoints: Sequence[Checkpoint], options: ReadOptions, instants: Instants
) -> tuple[Queries, list[Problem]]:
    """The queries at the instants, as far back as their checkpoints go, and problems with unreadable checkpoints.
    `options` has the names of the clusters. Clusters that did not answer are left out; they are reported elsewhere.
    """
    found: dict[str, list[Query]] = {}
    problems: list[Problem] = []
    by_cluster: dict[str, list[Checkpoint]] = {}
    for each in checkpoints:
        cluster = cluster_for(each, options)
        if cluster is None:
            known = ", ".join(one.title for one in options.clusters)
            text = f"checkpoint {each.path}: name its cluster, as CLUSTER:NAME=PATH or CLUSTER:=PATH; there are {known}"
            problems.append(Problem(None, text))
        elif cluster.name is not None and cluster.name in instants:
            by_cluster.setdefault(cluster.name, []).append(each)
    for name, own in by_cluster.items():
        called = [each for each in (name, instants[name].identity.cluster_id) if each is not None]
        queries, failed = read_queries(own, called, spark, at_ms=instants[name].measured_ms)
        problems += [Problem(name, f"checkpoint {text}") for text in failed]
        problems += [Problem(name, f"checkpoint {each.path}: {note}") for each in queries for note in each.notes]
        taken = result_of(_groups(next(each for each in options.clusters if each.name == name)))
        for query in queries:
            if query.name in taken:
                text = f"there is a group {query.name}: call the query otherwise, as NAME={query.path}"
                problems.append(Problem(name, f"checkpoint {query.path}: {text}"))
            else:
                found.setdefault(name, []).append(query)
    return Queries(found), problems


async def _groups(cluster: ClusterOptions) -> set[str]:
    """The ids of the existing groups; groups of brokers that do not list them are missing."""
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            return set((await admin.list_groups()).groups)
    except (ClientError, KafkaError):
        return set()
