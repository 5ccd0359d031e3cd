"""The plan of a read: ranges of offsets by partition, from the clusters, and their distribution over tasks."""

from __future__ import annotations

import asyncio
import difflib
import heapq
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, ListedOffset, OffsetSpec, TopicDescription, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import Begins, ClusterIdentity, Instant, list_logs, measure_logs
from groupkeeper.pipeline.kafka.options import EARLIEST, LATEST, ClusterOptions, ReadOptions, Start
from groupkeeper.protocol import OFFSETS_TOPIC, errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.uuids import uuid_text


class Sized(Protocol):
    """Something to read, with a known number of records."""

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)

RECORDS_WORTH_A_TASK = 100_000
"""A task costs as much as reading this many records."""

RECORDS_PER_TASK = 1_000_000
"""The approximate maximum of a task: it bounds the cost of a failure, and lets a Spark cluster use more cores than this
machine has.
"""

_PARTITIONS_PER_TASK = 2000
_SLACK = 1.2
"""A partition that is larger than a task's share by at most this factor is not cut."""

_DEFINITE = (errors.UnknownTopicOrPartition, errors.TopicAuthorizationFailed)

_DEFAULT_NAME = "cluster"
"""The name of a cluster without an id (brokers before 0.10.1) and without a given name."""


class Range(NamedTuple):
    """Records to read: offsets from the start to before the end."""

    cluster: int
    """The cluster's number in the options."""
    name: str
    """The cluster's, in the rows."""
    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets, which is an upper bound of the number of records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"cluster {self.name}, partition {self.topic}-{self.partition}"


class ReadPlan(NamedTuple):
    """All ranges, empty ones included, and why clusters cannot be read, by their titles. `instants`: of the other
    clusters, by name, if decoded rows are read.
    """

    ranges: list[Range]
    failed: dict[str, SourceError]
    instants: dict[str, Instant]


class Planned(NamedTuple):
    """The plan of one cluster; `instant` None: it was not requested, or nothing is read."""

    ranges: list[Range]
    instant: Instant | None


async def plan(options: ReadOptions) -> ReadPlan:
    """Queries all clusters at the same time; for decoded rows, also the ends of all their logs."""
    measures = options.rows == "decoded"
    plans = [plan_cluster(options, number, measures=measures) for number in range(len(options.clusters))]
    found = await asyncio.gather(*plans, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, SourceError):
            raise each
    return joined(options, {number: each for number, each in enumerate(found) if not isinstance(each, BaseException)},
                  {number: each for number, each in enumerate(found) if isinstance(each, SourceError)})  # fmt: skip


def joined(options: ReadOptions, planned: Mapping[int, Planned], failed: Mapping[int, SourceError]) -> ReadPlan:
    """Joins the plans of clusters, by their numbers. If two of them are one cluster with two addresses, the second
    fails.
    """
    ranges: list[Range] = []
    failures = {options.clusters[number].title: error for number, error in failed.items()}
    instants: dict[str, Instant] = {}
    title_by_name: dict[str, str] = {}
    for number, found in planned.items():
        title = options.clusters[number].title
        name = next((each.name for each in found.ranges), title)
        if name in title_by_name:
            failures[title] = SourceError(f"cluster {title}: it is {name}, as {title_by_name[name]} is")
            continue
        title_by_name[name] = title
        ranges += found.ranges
        if found.instant is not None:
            instants[name] = found.instant
    return ReadPlan(ranges, failures, instants)


def named(options: ReadOptions, ranges: Iterable[Range]) -> ReadOptions:
    """The options, with the names of clusters in the rows of these ranges, so that rows match clusters that have no
    given name.
    """
    names = {each.cluster: each.name for each in ranges}
    clusters = [each._replace(name=names.get(number, each.name)) for number, each in enumerate(options.clusters)]
    return options._replace(clusters=tuple(clusters))


async def plan_or_raise(options: ReadOptions) -> list[Range]:
    """The ranges alone; raises SourceError when a cluster cannot be read."""
    found = await plan(options._replace(rows="records"))
    for failure in found.failed.values():
        raise failure
    return found.ranges


async def plan_cluster(options: ReadOptions, number: int, *, measures: bool, of_all: bool = True) -> Planned:
    """The ranges of one cluster. `measures`: also its instant, with the ends of all its logs; `of_all` False: only
    those of the partitions to read. Raises SourceError.
    """
    cluster = options.clusters[number]
    cluster_id: str | None = None
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            is_asked = measures or not cluster.name
            cluster_id = (await admin.describe_cluster()).cluster_id if is_asked else None
            name = cluster.name or cluster_id or _DEFAULT_NAME
            partitions = await _partitions(admin, cluster)
            _check_named(cluster, partitions)
            read = None if of_all else {tp.topic for tp in partitions}
            begins = await list_logs(admin, read) if measures else None
            there = partitions if begins is None else _there(cluster, partitions, begins.earliest)
            earliest = await _listed(admin, cluster, dict.fromkeys(there, OffsetSpec.earliest()))
            latest = await _listed(admin, cluster, dict.fromkeys(there, OffsetSpec.latest()))
            log = {tp: (earliest[tp].offset, latest[tp].offset) for tp in there}
            ends = await _offsets(admin, cluster, cluster.end, log, False)
            # Right after the ends of the offsets topic were listed.
            stable = {tp: ends.get(tp) for tp in partitions}
            instant = None if begins is None else await _instant(admin, cluster_id, stable, begins)
            starts = await _offsets(admin, cluster, cluster.start, log, options.fails_without_later_record)
    except SourceError as error:
        error.cluster_id = cluster_id
        raise
    except (ClientError, KafkaError) as error:
        failure = SourceError(cluster.failing(error))
        failure.cluster_id = cluster_id
        raise failure from error
    ranges = []
    for tp, (first, last) in log.items():
        found = Range(number, name, tp.topic, tp.partition, starts[tp], ends[tp])
        ranges.append(_within_log(found, first, last, options.fails_on_data_loss))
    return Planned(ranges, instant)


async def check_ids(cluster: ClusterOptions) -> None:
    """Raises SourceError where a topic of the cluster has another id than the options say, or does not answer."""
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            await _partitions(admin, cluster)
    except (ClientError, KafkaError) as error:
        raise SourceError(cluster.failing(error)) from error


def _there(
    cluster: ClusterOptions, partitions: Sequence[TopicPartition], listed: Batch[TopicPartition, ListedOffset]
) -> list[TopicPartition]:
    """The partitions that can be read: those without a leader are left out. Raises SourceError if no partition has a
    leader, and for one that does not exist or that the principal may not read.
    """
    found = [tp for tp in partitions if tp not in listed.failed]
    for tp in partitions:
        failure = listed.failed.get(tp)
        if failure is not None and (not found or isinstance(failure, _DEFINITE)):
            raise SourceError(f"cluster {cluster.title}, partition {tp}: {_why(failure)}")
    return found


async def _instant(
    admin: Admin, cluster_id: str | None, stable: Mapping[TopicPartition, int | None], begins: Begins
) -> Instant | None:
    """Measures the logs of a cluster. None: the cluster has no partition of an offsets topic."""
    measured_ms, logs = await measure_logs(admin, begins)
    tp = next(iter(stable), None)
    if tp is None:
        return None
    topic_id = begins.topic_ids.get(tp)
    identity = ClusterIdentity(cluster_id, None if topic_id is None else uuid_text(topic_id))
    offsets = {each.partition: offset for each, offset in stable.items()}
    return Instant(measured_ms, identity, tp.topic, offsets, logs)


def _check_named(cluster: ClusterOptions, partitions: Sequence[TopicPartition]) -> None:
    """Raises SourceError for an offset or time of a partition that is not read: it would have no effect."""
    read = set(partitions)
    for which, start in (("starting", cluster.start), ("ending", cluster.end)):
        for topic, number in (*start.offset_by_partition, *start.timestamp_by_partition):
            if TopicPartition(topic, number) not in read:
                raise SourceError(
                    f"cluster {cluster.title}: {which} offset or time of {topic}-{number}, which is not among the "
                    "partitions to read"
                )


def _within_log(found: Range, first: int, last: int, fails_on_data_loss: bool) -> Range:
    """The part of the range that the log has. Raises SourceError if a part is missing and that counts as data loss."""
    way_out = "set failOnDataLoss=false to read the rest"
    if found.start < first and fails_on_data_loss:
        raise SourceError(
            f"{found}: offsets {found.start} to {first - 1} are gone, the log starts at {first}: {way_out}"
        )
    if max(found.start, found.end) > last and fails_on_data_loss:
        wanted = max(found.start, found.end)
        raise SourceError(f"{found}: offset {wanted} is beyond the end of the log, which is {last}: {way_out}")
    start = min(max(found.start, first), last)
    return found._replace(start=start, end=max(start, min(found.end, last)))


async def _partitions(admin: Admin, cluster: ClusterOptions) -> list[TopicPartition]:
    names: Iterable[str] | None = cluster.topics
    if cluster.pattern is not None:
        listed = await admin.list_topics(include_internal=True)
        names = [topic.name for topic in listed if re.fullmatch(cluster.pattern, topic.name)]
        if not names:
            raise SourceError(
                f"cluster {cluster.title}: no topic matches subscribePattern={cluster.pattern}, with its whole name"
            )
    elif cluster.partitions is not None:
        names = cluster.partitions
    described = await admin.describe_topics(names)
    for topic, failure in described.failed.items():
        hint = await _hint(admin, topic) if isinstance(failure, errors.UnknownTopicOrPartition) else ""
        raise SourceError(f"cluster {cluster.title}: topic {topic}: {_why(failure)}{hint}")
    for topic in cluster.topic_ids:
        if topic not in described.done:
            raise SourceError(f"cluster {cluster.title}: topicIds names {topic}, which is not read")
    found = []
    for topic, description in described.done.items():
        _check_id(cluster, description)
        there = [each.partition for each in description.partitions]
        wanted = there if cluster.partitions is None else cluster.partitions[topic]
        for partition in wanted:
            if partition not in there:
                raise SourceError(
                    f"cluster {cluster.title}: {topic} has no partition {partition}: it has {len(there)}, from 0 on"
                )
            found.append(TopicPartition(topic, partition))
    return found


async def _hint(admin: Admin, topic: str) -> str:
    """The end of an error about a missing topic: advice, or a similar name."""
    if topic == OFFSETS_TOPIC:
        return ": the first group that commits or joins makes it"
    near = difflib.get_close_matches(topic, [each.name for each in await admin.list_topics(include_internal=True)], 1)
    return f": did you mean {near[0]}?" if near else ": create it, or name another one"


def _check_id(cluster: ClusterOptions, found: TopicDescription) -> None:
    wanted = cluster.topic_ids.get(found.name)
    now = None if found.topic_id is None else uuid_text(found.topic_id)
    if wanted and now and now != wanted:
        raise SourceError(
            f"cluster {cluster.title}: topic {found.name} was deleted and made again: its id is {now}, not {wanted}"
        )


async def _listed(
    admin: Admin, cluster: ClusterOptions, specs: Mapping[TopicPartition, OffsetSpec]
) -> Mapping[TopicPartition, ListedOffset]:
    found = await admin.list_offsets(specs, read_committed=cluster.reads_committed)
    for tp, failure in found.failed.items():
        raise SourceError(f"cluster {cluster.title}, partition {tp}: {_why(failure)}")
    return found.done


async def _offsets(
    admin: Admin, cluster: ClusterOptions, wanted: Start, log: Mapping[TopicPartition, tuple[int, int]], fails: bool
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, OffsetSpec] = {}
    for tp, (first, last) in log.items():
        timestamp = wanted.timestamp_by_partition.get(tp, wanted.timestamp_ms)
        offset = wanted.offset_by_partition.get(tp, wanted.offset)
        if timestamp is not None:
            times[tp] = OffsetSpec(timestamp)
        else:
            found[tp] = first if offset == EARLIEST else last if offset == LATEST else offset
    if times:
        for tp, listed in (await _listed(admin, cluster, times)).items():
            if listed.offset < 0 and fails:
                time = times[tp].timestamp
                raise SourceError(
                    f"cluster {cluster.title}, partition {tp}: no record at or after {time}: "
                    "set startingOffsetsByTimestampStrategy=latest to start at the end then"
                )
            found[tp] = log[tp][1] if listed.offset < 0 else min(listed.offset, log[tp][1])
    return found


def _why(failure: Failure) -> str:
    if isinstance(failure, errors.UnknownTopicOrPartition):
        return "it does not exist"
    if isinstance(failure, errors.TopicAuthorizationFailed):
        return "not authorized: the principal needs Describe and Read on the topic"
    if isinstance(failure, errors.InvalidTopicException):
        return "no topic has such a name: only letters, digits, '.', '_' and '-'"
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def pack(ranges: Sequence[Range], options: ReadOptions) -> list[list[Range]]:
    """Distributes the ranges over tasks with about equal numbers of offsets: small ranges share a task, large ones are
    cut.

    There are at least as many tasks as requested, if there are as many offsets, and no task has more records than
    allowed.
    """
    ranges = [each for each in ranges if each.size]
    total = sum(each.size for each in ranges)
    tasks = options.tasks or _tasks_for(total)
    tasks = max(tasks, -(-len(ranges) // _PARTITIONS_PER_TASK))
    limit = max(1, total // tasks if options.tasks else -(-total // tasks))
    slack = 1.0 if options.tasks else _SLACK
    most = options.max_records_per_task
    if most is not None:
        limit = min(limit, most)
        slack = min(slack, most / limit)
    return _packed([piece for each in ranges for piece in _cut(each, limit, slack)], tasks, most)


def by_cluster(ranges: Iterable[Range]) -> list[list[Range]]:
    """The ranges grouped by cluster, as a reader has connections to one cluster."""
    found: dict[int, list[Range]] = {}
    for each in ranges:
        found.setdefault(each.cluster, []).append(each)
    return list(found.values())


def share(parts: Sequence[S], tasks: int | None) -> list[list[S]]:
    """Distributes parts that cannot be cut over tasks of about equal size; `tasks` None: as many as are worth it."""
    total = sum(part.size for part in parts)
    return _packed(parts, tasks or _tasks_for(total))


def _tasks_for(records: int) -> int:
    """The number of tasks: one for each core of this machine, fewer for few records, more for very many."""
    return max(min(os.cpu_count() or 1, 1 + records // RECORDS_WORTH_A_TASK), records // RECORDS_PER_TASK)


def _packed(parts: Sequence[S], tasks: int, most: int | None = None) -> list[list[S]]:
    """Assigns parts, the largest first, each to the task with the least. `most`: the maximum size of a task; tasks are
    added if this needs more.
    """
    packed: list[list[S]] = [[] for _ in range(min(tasks, len(parts)))]
    least = [(0, number) for number in range(len(packed))]  # a heap
    for part in sorted(parts, key=lambda each: -each.size):
        size, number = least[0]
        if most is not None and size + part.size > most:
            heapq.heappush(least, (part.size, len(packed)))
            packed.append([part])
        else:
            heapq.heapreplace(least, (size + part.size, number))
            packed[number].append(part)
    return packed


def _cut(found: Range, limit: int, slack: float) -> list[Range]:
    parts = -(-found.size // limit)
    if parts > 1 and found.size <= limit * slack:
        parts = 1
    bounds = [found.start + found.size * index // parts for index in range(parts + 1)]
    return [found._replace(start=start, end=end) for start, end in pairwise(bounds)]
