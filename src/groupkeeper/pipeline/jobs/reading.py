"""The ranges to read from each cluster: records that are in its log and not in the tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan, by_cluster
from groupkeeper.pipeline.storage.ledger import NextOffsets

_WAY_OUT = "choose another --tables, or another name for the cluster"


class Reading(NamedTuple):
    """A cluster's ranges from where the tables end; `notes` name records that the tables will never have."""

    name: str
    number: int
    ranges: tuple[Range, ...]
    notes: tuple[str, ...]
    topic_ids: Mapping[str, str] = MappingProxyType({})
    """The ids of the topics that are read, if the brokers have topic ids."""

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges)

    @property
    def read_to(self) -> dict[int, int]:
        """By partition, where the tables end after this reading."""
        return {each.partition: each.end for each in self.ranges}


class Known(Protocol):
    """The part of Ledger that is needed here."""

    @property
    def next_offsets(self) -> NextOffsets: ...

    @property
    def identities(self) -> Mapping[str, ClusterIdentity]: ...


def readings(planned: ReadPlan, known: Known) -> tuple[list[Reading], dict[str, SourceError]]:
    """The readings by cluster, from ranges that cover the whole logs; and errors for clusters whose log is another one
    than in the tables.
    """
    found: list[Reading] = []
    failed: dict[str, SourceError] = {}
    for own in by_cluster(planned.ranges):
        name = own[0].name
        try:
            instant = planned.instants.get(name)
            now = ClusterIdentity(None, None) if instant is None else instant.identity
            _check_identity(name, now, known.identities.get(name))
            found.append(_reading(own, known.next_offsets.get(name, {}), now.topic_id))
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


def _reading(ranges: list[Range], known: Mapping[int, int], topic_id: str | None) -> Reading:
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
    ids = {ranges[0].topic: topic_id} if topic_id else {}
    return Reading(ranges[0].name, ranges[0].cluster, tuple(left), tuple(notes), ids)
