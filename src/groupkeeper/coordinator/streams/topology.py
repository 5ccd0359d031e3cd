"""A topology applied to the existing topics: the partitions that each internal topic needs, and the missing topics.

A subtopology has as many tasks as its largest source topic has partitions. A repartition topic without a given number
of partitions gets as many as the largest topic that is read by the subtopologies which write it. Copartitioned topics
have the same number of partitions; a changelog has one partition for each task (Kafka 4.4.0 InternalTopicManager).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import StreamsInvalidTopology
from groupkeeper.protocol.messages.streams_group_topology_value import CopartitionGroup, Subtopology, TopicInfo

_NAMES_IN_MESSAGES = 3


class StatusCode(IntEnum):
    """A status in the response to a member of a streams group (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class TopologyProblem(NamedTuple):
    """A status code, and its detail text."""

    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """An internal topic to be created. `replication_factor` −1: the broker's default."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class TopologyRecord:
    """The topology of the group; members with another topology are refused."""

    value: m.StreamsGroupTopologyValue

    @property
    def epoch(self) -> int:
        """The topology's epoch, chosen by the application."""
        return self.value.epoch

    @cached_property
    def subtopology_by_source(self) -> Mapping[str, str]:
        """The subtopology that reads a topic; the topic may be a user's topic or an internal one."""
        return {
            name: one.subtopology_id
            for one in self.value.subtopologies
            for name in (*one.source_topics, *(topic.name for topic in one.repartition_source_topics))
        }

    @cached_property
    def topics(self) -> frozenset[str]:
        """All topics that the topology reads, and its changelog topics."""
        changelogs = (topic.name for one in self.value.subtopologies for topic in one.state_changelog_topics)
        return frozenset((*self.subtopology_by_source, *changelogs))


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology checked against the topics: it can run, or it can't.

    Attributes:
        task_counts: by subtopology id; empty when the topics don't fit.
        partition_counts: of the internal topics, by name, whether they exist or not.
        missing: the internal topics that don't exist.
        problem: why there can be no tasks; None when everything exists.
    """

    task_counts: Mapping[str, int] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    missing: Sequence[MissingTopic] = ()
    problem: TopologyProblem | None = None


class _DoesNotFit(Exception):
    """The numbers of partitions of existing topics contradict the topology."""


def configure(topology: TopologyRecord, topics: TopicsImage) -> ConfiguredTopology:
    """The topology applied to these topics. Raises `StreamsInvalidTopology` for a topology that no topics can fit."""
    subtopologies = topology.value.subtopologies
    missing_sources = sorted({name for one in subtopologies for name in one.source_topics} - topics.topics.keys())
    if missing_sources:
        detail = f"Source topics {_summary(missing_sources)} are missing."
        return ConfiguredTopology(problem=TopologyProblem(StatusCode.MISSING_SOURCE_TOPICS, detail))
    try:
        return _Counting(subtopologies, topics).configured()
    except _DoesNotFit as error:
        return ConfiguredTopology(problem=TopologyProblem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(error)))


def _summary(names: Sequence[str]) -> str:
    text = ", ".join(names[:_NAMES_IN_MESSAGES])
    rest = len(names) - _NAMES_IN_MESSAGES
    return f"{text} and {rest} additional topics" if rest > 0 else text


class _Counting:
    """Decides numbers of partitions."""

    def __init__(self, subtopologies: Sequence[Subtopology], topics: TopicsImage) -> None:
        self._subtopologies = subtopologies
        self._topics = topics
        self._decided: dict[str, int] = {}

    def configured(self) -> ConfiguredTopology:
        """The configured topology. Raises `_DoesNotFit`, `StreamsInvalidTopology`."""
        self._decide_repartition_topics()
        for one in self._subtopologies:
            for group in one.copartition_groups:
                self._copartition(_names_in(one, group))
        task_counts = {}
        for one in sorted(self._subtopologies, key=lambda one: one.subtopology_id):
            counts = [self._count(name) for name in _sources(one)]
            if not counts:
                raise StreamsInvalidTopology(f"No source topics found for subtopology {one.subtopology_id}")
            task_counts[one.subtopology_id] = max(counts)
            for changelog in one.state_changelog_topics:
                self._decided[changelog.name] = max(counts)
        missing = [self._missing(topic) for topic in self._internal() if not self._exists(topic)]
        problem = None
        if missing:
            detail = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
            problem = TopologyProblem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
        return ConfiguredTopology(task_counts, self._decided, missing, problem)

    def _count(self, name: str) -> int:
        """The number of partitions a topic has or will have."""
        known = self._topics.topics.get(name)
        return self._decided[name] if known is None else known.partition_count

    def _internal(self) -> Iterable[TopicInfo]:
        for one in self._subtopologies:
            yield from one.repartition_source_topics
            yield from one.state_changelog_topics

    def _exists(self, topic: TopicInfo) -> bool:
        known = self._topics.topics.get(topic.name)
        if known is None:
            return False
        if known.partition_count != self._decided[topic.name]:
            raise _DoesNotFit(
                f"Existing topic {topic.name} has different number of partitions: expected "
                f"{self._decided[topic.name]}, found {known.partition_count}"
            )
        return True

    def _missing(self, topic: TopicInfo) -> MissingTopic:
        configs = {config.key: config.value for config in topic.topic_configs}
        return MissingTopic(topic.name, self._decided[topic.name], topic.replication_factor or -1, configs)

    # --- repartition topics

    def _decide_repartition_topics(self) -> None:
        wanted = {one.name: one.partitions for one in self._repartition_topics()}
        written = {name for one in self._subtopologies for name in one.repartition_sink_topics}
        self._decided.update({name: count for name, count in wanted.items() if count})
        open_names = {name for name, count in wanted.items() if not count}
        if not open_names <= written:
            raise StreamsInvalidTopology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source "
                "topic is never used as a sink topic."
            )
        while open_names:
            found = {name: count for name in open_names if (count := self._largest_upstream(name, open_names))}
            if not found:
                raise StreamsInvalidTopology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
            self._decided.update(found)
            open_names -= found.keys()

    def _largest_upstream(self, name: str, open_names: set[str]) -> int:
        """The largest partition count of the topics read by the subtopologies that write this topic; 0 while none is
        known.
        """
        read = {
            source
            for one in self._subtopologies
            if name in one.repartition_sink_topics
            for source in _sources(one)
            if source not in open_names
        }
        # Use a repartition topic's required number, not the actual number of an existing one.
        counts = [self._decided[one] if one in self._decided else self._count(one) for one in read]
        return max(counts, default=0)

    def _repartition_topics(self) -> Iterable[TopicInfo]:
        return (topic for one in self._subtopologies for topic in one.repartition_source_topics)

    # --- copartitioned topics

    def _copartition(self, names: Sequence[str]) -> None:
        fixed = {topic.name for topic in self._repartition_topics() if topic.partitions}
        between = {topic.name for topic in self._repartition_topics()}
        internal = {name: self._count(name) for name in names if name in between}
        external = {name: self._count(name) for name in names if name not in internal}
        if external:
            count = _same(external, external)
        elif fixed_ones := {name: count for name, count in internal.items() if name in fixed}:
            count = _same(fixed_ones, internal)
        else:
            count = max(internal.values(), default=0)
        for name, has in internal.items():
            if name in fixed and has != count:
                raise _DoesNotFit(
                    f"Number of partitions [{has}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{count}] of the source topic."
                )
            self._decided[name] = count


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise _DoesNotFit(f"Following topics do not have the same number of partitions: [{{{text}}}]")
    return next(iter(counts.values()))


def _sources(subtopology: Subtopology) -> list[str]:
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def _names_in(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    """The topics of a copartition group. Raises `StreamsInvalidTopology` for an index out of range."""
    repartition_names = [topic.name for topic in subtopology.repartition_source_topics]
    names = []
    for indexes, topics in (
        (group.source_topics, subtopology.source_topics),
        (group.repartition_source_topics, repartition_names),
    ):
        for index in indexes:
            if not 0 <= index < len(topics):
                raise StreamsInvalidTopology(
                    f"A copartition group of subtopology {subtopology.subtopology_id} names a topic that isn't there."
                )
            names.append(topics[index])
    return names
