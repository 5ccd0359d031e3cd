"""A coordinator with topics, and members of consumer groups that send heartbeats."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.memory_shell import MemoryShell, Observer

from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.topics_image import TopicShape, TopicsImage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.framing import response_class
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from groupkeeper.protocol.primitives import Message, RootMessage

GROUP = "g"
Owned = Mapping[str, Iterable[int]]


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def topics_image(counts: Mapping[str, int], version: int = 1) -> TopicsImage:
    return TopicsImage(version, version, {name: TopicShape(name, topic_id(name), n) for name, n in counts.items()})


class Cluster:
    """One coordinator; `records` are those of the latest call."""

    def __init__(self, topics: Mapping[str, int], settings: Settings | None = None) -> None:
        self.answers: dict[int, Message] = {}
        self.records: list[Record] = []
        observer = Observer(appended=self.records.append, answered=self.answers.__setitem__)
        settings = settings or Settings(group_consumer_assignment_interval_ms=0)
        self.shell = MemoryShell(settings, observer=observer, topics=topics_image(topics))
        self._last_call_id = 0

    @property
    def group(self) -> ConsumerGroup:
        group = self.shell.coordinator.state.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def set_topics(self, topics: Mapping[str, int]) -> None:
        self.shell.see_topics(topics_image(topics, self.shell.topics.version + 1))

    def ask(self, request: RootMessage, *, version: int = 1, regex_error: str | None = None) -> Any:
        """The response of the request's API."""
        self.records.clear()
        self._last_call_id += 1
        fresh_id = f"fresh-{self._last_call_id}"
        self.shell.call(GroupCall(self._last_call_id, request, version, "client", "/host", fresh_id, regex_error))
        # Timers of no time at all, as the first rebalance of a classic group may have.
        self.shell.advance_to(self.shell.now_ms)
        answer = self.answers[self._last_call_id]
        assert type(answer) is response_class(request.API_KEY)
        return answer

    def written(self) -> list[str]:
        """What the latest call wrote: names of key classes, `-` before those of tombstones."""
        names = [type(record.key).__name__.removesuffix("Key").removeprefix("ConsumerGroup") for record in self.records]
        return [
            name if hasattr(record, "value") else f"-{name}" for name, record in zip(names, self.records, strict=True)
        ]


class Consumer:
    """A member as its client knows it: its epoch and its assignment."""

    def __init__(self, cluster: Cluster, member_id: str, *, instance_id: str | None = None) -> None:
        self.cluster = cluster
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.names: list[str] = []
        self.owned: dict[str, set[int]] = {}

    def join(
        self, *names: str, regex: str | None = None, assignor: str | None = None, timeout_ms: int = 30_000
    ) -> m.ConsumerGroupHeartbeatResponse:
        self.epoch, self.owned, self.names = 0, {}, list(names)
        return self.beat(names=list(names), regex=regex, assignor=assignor, timeout_ms=timeout_ms, owned={})

    def beat(
        self,
        *,
        names: list[str] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        timeout_ms: int = -1,
        owned: Owned | None = None,
    ) -> m.ConsumerGroupHeartbeatResponse:
        """Sends a heartbeat; takes epoch and assignment from the answer unless it is an error."""
        request = m.ConsumerGroupHeartbeatRequest(
            GROUP,
            self.member_id,
            self.epoch,
            self.instance_id,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [TopicPartitions(topic_id(name), sorted(some)) for name, some in owned.items()],
        )
        answer = self.cluster.ask(request)
        if answer.error_code == NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                name_by_id = self.cluster.shell.topics.name_by_id
                self.owned = {
                    name_by_id[topic.topic_id]: set(topic.partitions)
                    for topic in answer.assignment.topic_partitions
                    if topic.topic_id in name_by_id
                }
        return answer

    def report(self) -> m.ConsumerGroupHeartbeatResponse:
        """A heartbeat with the partitions that the member owns."""
        return self.beat(owned=self.owned)


def settle(*members: Consumer) -> None:
    """Lets everybody heartbeat until nothing moves."""
    for _ in range(4):
        for member in members:
            member.report()
