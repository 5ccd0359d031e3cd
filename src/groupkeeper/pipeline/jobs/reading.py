"""What is to be read of each cluster: what its log has and the tables have not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.ledger import NextOffsets
from groupkeeper.pipeline.options import Options
from groupkeeper.pipeline.planning import Range

__all__ = ["Reading", "readings", "source_options"]

_RECORDS_PER_TASK = 1_000_000
"""Bounds what a failure costs, and what progress is told in."""


class Reading(NamedTuple):
    """A cluster's ranges from where the tables end; `notes` tell what they will never have."""

    name: str
    number: int
    ranges: tuple[Range, ...]
    notes: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges)

    @property
    def read_to(self) -> NextOffsets:
        """Where the tables end when it is done."""
        return {self.name: {each.partition: each.end for each in self.ranges}}


def readings(ranges: Iterable[Range], known: NextOffsets) -> tuple[list[Reading], dict[str, SourceError]]:
    """By cluster, of ranges from the logs' starts to their ends; and the errors of clusters whose log isn't the one
    that the tables are of.
    """
    by_cluster: dict[str, list[Range]] = {}
    for each in ranges:
        by_cluster.setdefault(each.name, []).append(each)
    found: list[Reading] = []
    failed: dict[str, SourceError] = {}
    for name, own in by_cluster.items():
        try:
            found.append(_reading(own, known.get(name, {})))
        except SourceError as error:
            failed[name] = error
    return found, failed


def _reading(ranges: list[Range], known: Mapping[int, int]) -> Reading:
    left: list[Range] = []
    notes: list[str] = []
    for each in ranges:
        following = known.get(each.partition, each.start)
        if following > each.end:
            raise SourceError(
                f"{each}: the tables go up to offset {following}, the log only to {each.end}: it has been cut, or is "
                "another one: choose another --output, or another name for the cluster"
            )
        if following < each.start:
            notes.append(f"{each}: offsets {following} to {each.start - 1} are gone, the log starts at {each.start}")
        left.append(each._replace(start=max(following, each.start)))
    return Reading(ranges[0].name, ranges[0].cluster, tuple(left), tuple(notes))


def source_options(options: Options, found: Iterable[Reading], *, is_streaming: bool = False) -> dict[str, str]:
    """Options of the source that read exactly this; a stream begins there."""
    clusters: dict[str, dict[str, str]] = {}
    for each in found:
        cluster = options.clusters[each.number]
        own = {f"kafka.{name}": value for name, value in cluster.properties.items()}
        own["subscribe"] = ",".join(dict.fromkeys(one.topic for one in each.ranges))
        own["startingOffsets"] = _offsets_json((one, one.start) for one in each.ranges)
        if not is_streaming:
            own["endingOffsets"] = _offsets_json((one, one.end) for one in each.ranges)
        clusters[each.name] = own
    return {
        "clusters": json.dumps(clusters),
        "rows": "decoded",
        "maxRecordsPerPartition": str(options.max_records_per_task or _RECORDS_PER_TASK),
        "kafkaConsumer.pollTimeoutMs": str(options.poll_timeout_ms),
    }


def _offsets_json(pairs: Iterable[tuple[Range, int]]) -> str:
    found: dict[str, dict[str, int]] = {}
    for each, offset in pairs:
        found.setdefault(each.topic, {})[str(each.partition)] = offset
    return json.dumps(found)
