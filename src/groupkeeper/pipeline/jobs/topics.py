"""tables.TOPICS: the topics at the instant, their sizes, and how they grow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import results_of
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.pipeline.present.trends import LEAST_S, MEASURES
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.tables import TOPICS
from groupkeeper.pipeline.tables.schema import LARGEST
from groupkeeper.protocol.errors import KafkaError

_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")
_NOT_NOW = "not measured: "
_CARRIED = {"records_per_s": None, "growth_bytes_per_s": None}
"""Columns of a cluster that was not measured: it has no current rates."""

_Row = dict[str, Any]
_Key = tuple[str, str]


class TopicFacts(NamedTuple):
    """Facts about a topic; None: unknown."""

    is_internal: bool | None = None
    replication_factor: int | None = None
    """The smallest number among its partitions."""
    cleanup_policy: str | None = None
    """delete, compact, or both."""
    retention_ms: int | None = None
    """−1: unlimited."""
    retention_bytes: int | None = None
    """For each partition; −1: unlimited."""
    log_bytes: int | None = None
    """Counts the largest replica of each partition."""
    disk_bytes: int | None = None
    """Counts all replicas."""
    problem: str | None = None
    """Why something is unknown; None: no request failed."""


def topics(readers: Rows, clusters: Clusters, then: Rows, note: Callable[[str], None] = lambda text: None) -> pa.Table:
    """Rows of tables.TOPICS. `readers`: rows of tables.state.READERS; `then`: rows of the last refresh. These stay if
    they are of the instant's minute; those of an unmeasured cluster stay with a problem, so that a new id shows that a
    topic was created again. Calls `note` with a text about each such topic.
    """
    earlier = loaded(then, TOPICS.names).cast(TOPICS.arrow)
    before: dict[_Key, _Row] = {(row["cluster"], row["topic"]): row for row in earlier.to_pylist()}
    groups: Counter[_Key] = Counter()
    for row in loaded(readers).to_pylist():
        groups[row["cluster"], row["topic"]] += row["groups"]
    requests = {
        name: cluster
        for name, (cluster, instant) in clusters.measured.items()
        if not _is_measured(name, instant, before)
    }
    rows = [
        row if name in clusters.instants else {**row, **_CARRIED, "problem": _NOT_NOW + clusters.why_unmeasured(name)}
        for (name, _), row in before.items()
        if name not in requests
    ]
    for (name, _), facts in zip(requests.items(), results_of(map(_ask, requests.values())), strict=True):
        rows += _rows(name, clusters.instants[name], facts, before)
    for name in requests:
        for topic, (old, new) in sorted(_created_again(name, clusters.instants[name], before).items()):
            note(
                f"cluster {name}: topic {topic} was deleted and created again: its id was {old}, and is {new}; trends "
                "and rates begin again"
            )
    for row in rows:
        row["groups"] = groups[row["cluster"], row["topic"]]
    return pa.Table.from_pylist(rows, TOPICS.arrow)


def _is_measured(name: str, instant: Instant, before: Mapping[_Key, _Row]) -> bool:
    """Whether the last refresh's rows are of the instant's minute, and have all of its topics."""
    names = {tp.topic for tp in instant.logs}
    known = [before[name, topic] for topic in names if (name, topic) in before]
    if len(known) < len(names) or _created_again(name, instant, before):
        return False
    minute = _minute(_time(instant.measured_ms))
    is_carried = any((row["problem"] or "").startswith(_NOT_NOW) for row in known)
    return not is_carried and all(_minute(row["measured_time"]) == minute for row in known)


def _created_again(name: str, instant: Instant, before: Mapping[_Key, _Row]) -> dict[str, tuple[str, str]]:
    """The old and the new id of each topic whose id has changed."""
    found = {}
    for tp, log in instant.logs.items():
        row = before.get((name, tp.topic))
        if row is None or not isinstance(log, LogEnds) or None in (row["topic_id"], log.topic_id):
            continue
        if row["topic_id"] != log.topic_id:
            found[tp.topic] = (row["topic_id"], str(log.topic_id))
    return found


def _rows(name: str, instant: Instant, facts: Mapping[str, TopicFacts], before: Mapping[_Key, _Row]) -> Iterator[_Row]:
    logs: dict[str, list[object]] = {}
    for tp, log in instant.logs.items():
        logs.setdefault(tp.topic, []).append(log)
    for topic, own in logs.items():
        known = [each for each in own if isinstance(each, LogEnds)]
        is_whole = len(known) == len(own)
        fact = facts.get(topic, TopicFacts(problem="it could not be described"))
        now = {
            "time": _time(instant.measured_ms),
            "log_end_offset": _sum(each.log_end_offset for each in known) if is_whole else None,
            "log_bytes": fact.log_bytes,
        }
        row = before.get((name, topic))
        topic_id = next((each.topic_id for each in known), None if row is None else row["topic_id"])
        measures = [*_measures(row, topic_id, now), now][-MEASURES:]
        yield {
            **fact._asdict(),
            "cluster": name,
            "topic": topic,
            "topic_id": topic_id,
            "partitions": len(own),
            "records": _sum(each.log_end_offset - each.log_start_offset for each in known) if is_whole else None,
            "measured_time": now["time"],
            "measures": measures,
            "records_per_s": _per_s(measures, "log_end_offset"),
            "growth_bytes_per_s": _per_s(measures, "log_bytes"),
            "problem": fact.problem if is_whole else "the ends of its logs are not all known",
        }


def _measures(row: _Row | None, topic_id: str | None, now: _Row) -> list[_Row]:
    """The earlier measures of a topic; none if it was created again, or its logs were truncated."""
    if row is None or row["topic_id"] != topic_id:
        return []
    measures: list[_Row] = row["measures"]
    last = max((each["log_end_offset"] or 0 for each in measures), default=0)
    return measures if now["log_end_offset"] is None or now["log_end_offset"] >= last else []


def _per_s(measures: list[_Row], name: str) -> float | None:
    known = [each for each in measures if each[name] is not None]
    if not known or known[-1] is not measures[-1]:
        return None
    seconds = (known[-1]["time"] - known[0]["time"]) / timedelta(seconds=1)
    return (known[-1][name] - known[0][name]) / seconds if seconds >= LEAST_S else None


def _time(measured_ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=measured_ms)


def _minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


def _sum(offsets: Iterable[int]) -> int:
    return min(sum(offsets), LARGEST)


class _Sizes(NamedTuple):
    """The sizes of each partition's replicas in bytes. `problem`: why sizes are unknown; None: they are known."""

    by_partition: Mapping[TopicPartition, Sequence[int]]
    problem: str | None


async def _ask(cluster: ClusterOptions) -> dict[str, TopicFacts]:
    """The facts by topic; empty if the cluster does not reply. A topic with a failed request has a `problem`."""
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            described = await admin.describe_topics(None)
            settings, sizes = await asyncio.gather(_settings(admin, described.done), _sizes(admin))
    except (ClientError, KafkaError):  # it has answered a moment ago, when it was measured
        return {}
    bytes_by_topic: dict[str, list[Sequence[int]]] = {}
    for tp, own in sizes.by_partition.items():
        bytes_by_topic.setdefault(tp.topic, []).append(own)
    found = {}
    for name, topic in described.done.items():
        own_bytes = bytes_by_topic.get(name) if sizes.problem is None else None
        found[name] = TopicFacts(
            topic.is_internal,
            min((len(each.replicas) for each in topic.partitions), default=None),
            settings.get(name, {}).get("cleanup.policy"),
            _number(settings.get(name, {}).get("retention.ms")),
            _number(settings.get(name, {}).get("retention.bytes")),
            None if own_bytes is None else sum(map(max, own_bytes)),
            None if own_bytes is None else sum(map(sum, own_bytes)),
            sizes.problem if name in settings else "its settings could not be queried",
        )
    return found


async def _settings(admin: Admin, names: Mapping[str, object]) -> dict[str, Mapping[str, str]]:
    try:
        return dict((await admin.topic_settings(names, _SETTINGS)).done)
    except (ClientError, KafkaError):
        return {}


async def _sizes(admin: Admin) -> _Sizes:
    """Sizes are known only when every broker has replied: a partial sum would look like a drop."""
    sizes: dict[TopicPartition, list[int]] = {}
    try:
        answers = await admin.describe_log_dirs()
    except (ClientError, KafkaError) as error:
        return _Sizes({}, f"sizes are not known: {error}")
    for broker_id, failure in answers.failed.items():
        return _Sizes({}, f"sizes are not known: broker {broker_id}: {failure}")
    for broker_id, folders in answers.done.items():
        for folder, each in folders.items():
            if each.error is not None:
                return _Sizes({}, f"sizes are not known: broker {broker_id}, {folder}: {each.error}")
            for tp, replica in each.replicas.items():
                if not replica.is_future:
                    sizes.setdefault(tp, []).append(replica.size)
    return _Sizes(sizes, None)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
