"""The ranges to read from each cluster: records that are in its log and not in the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import RECORDS_PER_TASK, Range, ReadPlan, by_cluster
from groupkeeper.pipeline.storage.ledger import NextOffsets

_WAY_OUT = "choose another --tables, or another name for the cluster"


class Reading(NamedTuple):
    """A cluster's ranges from where the tables end; `notes` name records that the tables will never have. `is_whole`:
    the ranges cover all partitions; otherwise some could not be queried.
    """

    name: str
    number: int
    ranges: tuple[Range, ...]
    notes: tuple[str, ...]
    topic_ids: Mapping[str, str] = MappingProxyType({})
    """Of the topics that are read, where the brokers tell."""
    is_whole: bool = True

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges)

    @property
    def read_to(self) -> NextOffsets:
        """Where the tables end after the reading."""
        return {self.name: {each.partition: each.end for each in self.ranges}}


class Known(Protocol):
    """The part of Ledger that is needed here."""

    @property
    def next_offsets(self) -> NextOffsets: ...

    @property
    def identities(self) -> Mapping[str, ClusterIdentity]: ...


def readings(planned: ReadPlan, known: Known) -> tuple[list[Reading], dict[str, SourceError]]:
    """The readings by cluster, made from ranges that cover the whole logs; and errors for clusters whose log is not the
    log that the tables contain.
    """
    found: list[Reading] = []
    failed: dict[str, SourceError] = {}
    for own in by_cluster(planned.ranges):
        name = own[0].name
        try:
            instant = planned.instants.get(name)
            now = ClusterIdentity(None, None) if instant is None else instant.identity
            _check_identity(name, now, known.identities.get(name))
            reading = _reading(own, known.next_offsets.get(name, {}))
            ids = {own[0].topic: now.topic_id} if now.topic_id else {}
            is_whole = instant is None or instant.unread is None
            found.append(reading._replace(topic_ids=ids, is_whole=is_whole))
        except SourceError as error:
            failed[name] = error
    return found, failed


def why_unread(name: str, failure: SourceError, known: Known) -> SourceError:
    """Why a cluster cannot be read; mostly because the tables belong to another cluster."""
    try:
        _check_identity(name, ClusterIdentity(failure.cluster_id, None), known.identities.get(name))
    except SourceError as error:
        return error
    return failure


def _check_identity(name: str, now: ClusterIdentity, then: ClusterIdentity | None) -> None:
    """Compares identities: a recreated log may be longer than the tables. An unknown identity does not count as
    different.
    """
    if then is None:
        return
    what = {"cluster": (then.cluster_id, now.cluster_id), "offsets topic": (then.topic_id, now.topic_id)}
    for kind, (old, new) in what.items():
        if old is not None and new is not None and old != new:
            raise SourceError(
                f"cluster {name}: the tables are of another {kind}, with the id {old}; the id is {new} now: {_WAY_OUT}"
            )


def same_clusters(identities: Mapping[str, ClusterIdentity]) -> list[str]:
    """Notes about cluster names that mean the same cluster."""
    names: dict[str, list[str]] = {}
    for name, identity in identities.items():
        if identity.cluster_id is not None:
            names.setdefault(identity.cluster_id, []).append(name)
    return [
        f"{' and '.join(same)} are the same cluster, its id is {cluster_id}: its groups are in the tables once for each"
        for cluster_id, same in names.items()
        if len(same) > 1
    ]


def _reading(ranges: list[Range], known: Mapping[int, int]) -> Reading:
    left: list[Range] = []
    notes: list[str] = []
    for each in ranges:
        following = known.get(each.partition, each.start)
        if following > each.end:
            raise SourceError(
                f"{each}: the tables go up to offset {following}, the log only to {each.end}: it has been cut, or is "
                f"another one: {_WAY_OUT}"
            )
        if following < each.start:
            notes.append(f"{each}: offsets {following} to {each.start - 1} are gone, the log starts at {each.start}")
        left.append(each._replace(start=max(following, each.start)))
    return Reading(ranges[0].name, ranges[0].cluster, tuple(left), tuple(notes))


def source_options(options: ReadOptions, found: Iterable[Reading], *, is_streaming: bool = False) -> dict[str, str]:
    """Options with which the source reads exactly these ranges; a stream starts there."""
    clusters: dict[str, dict[str, str]] = {}
    for each in found:
        cluster = options.clusters[each.number]
        own = {f"kafka.{name}": value for name, value in cluster.properties.items()}
        starts = _offsets((one, one.start) for one in each.ranges)
        if each.is_whole:
            own["subscribe"] = ",".join(starts)
        else:
            own["assign"] = json.dumps({topic: list(map(int, numbers)) for topic, numbers in starts.items()})
        if is_streaming and each.topic_ids:
            own["topicIds"] = json.dumps(each.topic_ids)
        own["startingOffsets"] = json.dumps(starts)
        if not is_streaming:
            own["endingOffsets"] = json.dumps(_offsets((one, one.end) for one in each.ranges))
        clusters[each.name] = own
    return {
        **_privacy_options(options),
        "clusters": json.dumps(clusters),
        "rows": "decoded",
        "maxRecordsPerPartition": str(options.max_records_per_task or RECORDS_PER_TASK),
        "kafkaConsumer.pollTimeoutMs": str(options.poll_timeout_ms),
    }


def _privacy_options(options: ReadOptions) -> dict[str, str]:
    if options.privacy is None:
        return {}
    secret = {"privacySecret": options.privacy.key.hex()} if options.privacy.key else {}
    return {"privacy": json.dumps(options.privacy.modes), **secret}


def _offsets(pairs: Iterable[tuple[Range, int]]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, in the form of the source's options."""
    found: dict[str, dict[str, int]] = {}
    for each, offset in pairs:
        found.setdefault(each.topic, {})[str(each.partition)] = offset
    return found
