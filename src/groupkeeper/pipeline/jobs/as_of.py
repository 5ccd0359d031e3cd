"""The committed offsets of a past time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession

from groupkeeper.operations.times import utc_text
from groupkeeper.pipeline.decode.privacy import KEEP
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.refresh import update_lake
from groupkeeper.pipeline.jobs.restoring import OffsetThen
from groupkeeper.pipeline.jobs.snapshot import update_history
from groupkeeper.pipeline.jobs.watch import Run, Summary, Watch
from groupkeeper.pipeline.kafka.planning import ReadPlan
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, OFFSETS_AS_OF
from groupkeeper.pipeline.transforms.offsets_as_of import offsets_as_of


class OffsetsAsOf(NamedTuple):
    """The run, and the offsets of the wanted groups by cluster."""

    run: Run
    offsets: dict[str, list[OffsetThen]]

    @property
    def summary(self) -> Summary:
        """The run's summary."""
        return self.run.summary


def as_of(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    time_ms: int,
    watch: Watch | None = None,
    *,
    wants: Callable[[str], bool] | None = None,
    ask: Callable[[], ReadPlan] | None = None,
) -> OffsetsAsOf:
    """Bring the history in `directory` up to date, and write tables.OFFSETS_AS_OF for all groups. The result has the
    groups whose names `wants` accepts; None: no groups. Other arguments as for `snapshot`.
    """
    run = Run(watch)
    with open_output(spark, directory) as output:
        if time_ms < (kept_from_ms := output.ledger.kept_from_ms):
            raise SourceError(
                f"{directory}: rows from before {utc_text(kept_from_ms)} are gone (--keep-rows): choose a time from "
                "then on"
            )
        update_history(output, options, run, ask)
        at_that_time = offsets_as_of(output.read(COMMITS), output.read(GROUP_RECORDS), time_ms)
        run.write(OFFSETS_AS_OF.name, output.replace(at_that_time, OFFSETS_AS_OF))
        update_lake(output, run)
        offsets: dict[str, list[OffsetThen]] = {}
        has_metadata = (output.ledger.privacy or {}).get("metadata", KEEP) == KEEP
        if wants is not None:
            if not has_metadata:
                run.note("the tables do not keep the metadata of commits (--privacy): the plans have none")
            rows = output.read(OFFSETS_AS_OF).select("cluster", *OffsetThen._fields)
            for cluster, *row in rows.toLocalIterator():  # of a fleet, most may not be wanted
                then = OffsetThen(*row)
                if wants(then.group_id):
                    offsets.setdefault(cluster, []).append(then if has_metadata else then._replace(metadata=None))
        return OffsetsAsOf(run, offsets)
