"""Appends to the history as clusters write, and builds tables from it: the loop, and one refresh."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.pipeline.governance.privacy import with_privacy
from groupkeeper.pipeline.jobs.following.reads import CHECKPOINTS, Reads
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.queries import Checkpoint, Queries, find_queries
from groupkeeper.pipeline.jobs.refresh import make_tables
from groupkeeper.pipeline.jobs.steps import Given
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.kafka.instants import Instants
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.owners import OwnerRule
from groupkeeper.pipeline.storage.output import LakeChoice, Output, open_output
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS

_LOOK_S = 0.2
_LONGEST_S = 300.0
"""A group that stands still becomes worse by the time alone."""


def follow(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    stop: threading.Event,
    watch: Watch | None = None,
    *,
    interval_s: float = 5,
    refresh_s: float = 30,
    lake: LakeChoice | None = None,
    keep_days: int | None = None,
    checkpoints: Sequence[Checkpoint] = (),
    owners: Sequence[OwnerRule] = (),
    journals: Sequence[str | ChangeJournal] = (),
) -> Summary:
    """Every `interval_s`, append new records of the clusters to the history; every `refresh_s`, rebuild all other
    tables if there is something new; until `stop` is set. Failing clusters are reported and retried. `lake`,
    `keep_days`, `checkpoints`, `owners` and `journals` as for `snapshot`.

    Raises SourceError when the directory can't be written.
    """
    parsed = parse_options({**options, "rows": "decoded"})
    with open_output(spark, directory, lake=lake, keep_days=keep_days) as output:
        if output.is_here:
            output.files.remove(CHECKPOINTS)  # left by an earlier version
        run = Run(watch)
        if output.ledger.loss is not None:
            run.note(output.ledger.loss)
        run.append({COMMITS.name: 0, GROUP_RECORDS.name: 0})
        reads = Reads(output, with_privacy(parsed, output.ledger), run, interval_s)
        refreshing = Refreshing(output, reads, run, checkpoints, owners, journals)
        often_s = min(interval_s, refresh_s)
        try:
            ended_at, pause_s = -refresh_s, refresh_s
            while not stop.is_set():
                reads.look_after()
                since_s = time.monotonic() - ended_at
                if reads.is_ready and (since_s >= pause_s or (since_s >= often_s and reads.has_more)):
                    pause_s = refresh_s if refreshing.refresh(stop) else often_s
                    ended_at = time.monotonic()
                stop.wait(_LOOK_S)
        finally:
            reads.end()
        return run.summary


class _Basis(NamedTuple):
    """The inputs of the tables: the appended rows, the log ends, queries of Spark, the time."""

    appended: int
    logs: Mapping[str, Mapping[TopicPartition, object]]
    queries: object
    at: float


class Refreshing:
    """Builds the tables for one instant after another."""

    def __init__(
        self,
        output: Output,
        reads: Reads,
        run: Run,
        checkpoints: Sequence[Checkpoint] = (),
        owners: Sequence[OwnerRule] = (),
        journals: Sequence[str | ChangeJournal] = (),
    ) -> None:
        self._output = output
        self._reads = reads
        self._run = run
        self._checkpoints = checkpoints
        self._owners = owners
        self._journals = journals
        self._made: _Basis | None = None
        """Of what all tables were made last."""

    def refresh(self, stop: threading.Event) -> bool:
        """Measure, wait until the history reaches that instant, build the tables for it; False: it was not
        necessary.
        """
        reads, run = self._reads, self._run
        instants = reads.measure()
        queries, strange = self._queries(instants)
        logs = {name: each.logs for name, each in instants.items()}
        basis = _Basis(reads.appended, logs, queries.state(), time.monotonic())
        if not self._is_due(basis):
            return False
        deadline = time.monotonic() + reads.patience_s
        while not reads.has_read(instants) and time.monotonic() < deadline:
            if stop.wait(_LOOK_S):
                return False
            reads.look_after()
        reads.note_late(instants)
        problems = run.summary.problems
        before = len(problems)
        for problem in strange:
            run.fail(problem)
        clusters = Clusters(reads.options, instants, reads.failed)
        given = Given(clusters, reads.retentions, queries=queries, owners=self._owners, journals=self._journals)
        make_tables(self._output, given, run)
        if len(problems) == before:
            self._made = basis
        del problems[before:]  # reported; the next refresh tries again
        run.watch.waiting()
        return True

    def _queries(self, instants: Instants) -> tuple[Queries, list[Problem]]:
        """The progress of the queries of the given checkpoints."""
        if not self._checkpoints:
            return Queries(), []
        return find_queries(self._output.spark, self._checkpoints, self._reads.options, instants)

    def _is_due(self, basis: _Basis) -> bool:
        """Whether something was committed or written since the tables were built, or enough time has passed to change
        them by itself.
        """
        made = self._made
        return made is None or made[:3] != basis[:3] or basis.at - made.at >= _LONGEST_S
