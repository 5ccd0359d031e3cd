"""One broker's side of a program of consumer groups: its answers and records without what brokers needn't share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.differential.coordinator.log import PARTITIONS, Line, LogTail
from tests.differential.pair import Asked
from tests.differential.wire import Connection
from tests.patience import until

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_assignment
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.java_hash import partition_of_group
from groupkeeper.protocol.primitives import Message, RootMessage

TOPICS = {"da": 3, "db": 2}
_TIMES = frozenset({"commit_timestamp", "expire_timestamp", "assignment_timestamp", "timestamp", "version"})
_OWN = frozenset({"throttle_time_ms", "metadata_hash", "current_state_timestamp", "client_host", "leader"})
"""What a broker may choose by itself, as the leader of a group that was downgraded."""
_LATER = frozenset({"heartbeat_interval_ms"})
"""Settings of a group come into force at Apache Kafka some time after they were set."""


@dataclass
class Belief:
    """What a member was told last."""

    member_id: str
    epoch: int = 0
    owned: list[tuple[bytes, list[int]]] = field(default_factory=list)


class Side(Asked):
    """A broker; `begin` starts a program in a group of its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.group_id = ""
        self.topic_ids: dict[str, bytes] = {}
        self.name_by_id: dict[bytes, str] = {}
        self.beliefs: dict[str, Belief] = {}
        self._lines: list[Line] = []
        self._probes = 0

    def prepare(self) -> None:
        """Creates the topics and waits for the coordinator."""
        self.make_topics(TOPICS)

        def is_ready() -> bool:
            fetched = self.pool.ask(m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g")]), 8)
            return self.coordinator_error(0, "g") == 0 == fetched.groups[0].error_code

        until(is_ready)
        self.log = LogTail(self.pool)

    def make_topics(self, counts: dict[str, int]) -> None:
        """Creates topics, and waits until they can be used."""
        topics = [m.CreatableTopic(name, count, 1) for name, count in counts.items()]
        self.pool.ask(m.CreateTopicsRequest(topics, 30_000), 7)

        def is_known() -> bool:
            known = self.pool.ask(m.MetadataRequest([m.MetadataRequestTopic(name=one) for one in counts]), 12)
            self.topic_ids |= {one.name or "": one.topic_id for one in known.topics if one.error_code == NONE}
            return all(len(one.partitions) == counts[one.name or ""] for one in known.topics)

        until(is_known)
        for name in counts:
            made_before = sum(one.rstrip("'") == name for one in self.name_by_id.values())
            self.name_by_id.setdefault(self.topic_ids[name], name + "'" * made_before)

    def make_topic(self, name: str, count: int) -> None:
        """Creates a topic; returns when the coordinator knows."""
        self.make_topics({name: count})
        self._until_seen(name, count)

    def grow_topic(self, name: str, count: int) -> None:
        """Adds partitions; returns when the coordinator knows."""
        self.pool.ask(m.CreatePartitionsRequest([m.CreatePartitionsTopic(name, count, None)], 30_000), 3)
        self._until_seen(name, count)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; returns when the coordinator knows, and has deleted its offsets."""
        self.pool.ask(m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
        self._until_seen(name, 0)
        fetch = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(self.group_id, topics=None)])

        def are_deleted() -> bool:
            answer = self.pool.ask(fetch, 8)
            return all(topic.name != name for topic in answer.groups[0].topics)

        until(are_deleted)

    def _until_seen(self, name: str, count: int) -> None:
        """Waits until another group in the same partition of the offsets topic is given that many partitions."""
        mine = partition_of_group(self.group_id, PARTITIONS)
        while partition_of_group(f"probe-{self._probes}", PARTITIONS) != mine:
            self._probes += 1
        probe = f"probe-{self._probes}"
        self._probes += 1

        def is_seen() -> bool:
            # Who joins, if once more, is told its assignment.
            answer = self.pool.ask(
                m.ConsumerGroupHeartbeatRequest(probe, "p", 0, None, None, 9_000, [name], None, None, []), 0
            )
            assert answer.assignment is not None, answer
            return sum(len(one.partitions) for one in answer.assignment.topic_partitions) == count

        until(is_seen)
        self.pool.ask(m.ConsumerGroupHeartbeatRequest(probe, "p", -1), 0)
        self.pool.ask(m.DeleteGroupsRequest([probe]), 2)

    def begin(self, program: str) -> None:
        self.group_id = program
        self.beliefs = {}
        self._lines = []

    def belief(self, symbol: str) -> Belief:
        return self.beliefs.setdefault(symbol, Belief(symbol))

    def send(self, request: RootMessage, version: int) -> Connection:
        connection = self.pool.take()
        connection.send(request, version)
        return connection

    def learn(self, symbol: str, answer: RootMessage) -> object:
        """The answer as it may be compared; a member remembers what it is told."""
        belief = self.belief(symbol)
        if isinstance(answer, m.ConsumerGroupHeartbeatResponse) and answer.error_code == NONE:
            belief.member_id = answer.member_id or belief.member_id
            belief.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                belief.owned = [(one.topic_id, list(one.partitions)) for one in answer.assignment.topic_partitions]
        elif isinstance(answer, m.JoinGroupResponse) and answer.member_id:
            belief.member_id = answer.member_id
            belief.epoch = max(answer.generation_id, 0)
            self._learn_ids(answer.members)
        elif isinstance(answer, m.DescribeGroupsResponse):
            self._learn_ids(answer.groups[0].members)
        elif isinstance(answer, m.SyncGroupResponse) and answer.error_code == NONE and answer.assignment:
            assigned = decode_assignment(answer.assignment).assigned_partitions
            belief.owned = [(self.topic_ids[one.topic], list(one.partitions)) for one in assigned]
        return self.normal(answer)

    def _learn_ids(self, members: Sequence[m.JoinGroupResponseMember | m.DescribedGroupMember]) -> None:
        """Of members of a classic group, whose own answers may come later: all of them are static."""
        for member in members:
            self.belief((member.group_instance_id or "i?")[1:]).member_id = member.member_id

    def leader(self, answer: RootMessage) -> str:
        """Who leads, of members of the classic protocol."""
        return self._symbolic(answer.leader) if isinstance(answer, m.JoinGroupResponse) else ""

    def resolved(self) -> tuple[int, set[str]]:
        """How often topics of regular expressions were written, and the expressions that have some."""
        self._lines += self.log.read([self.group_id])
        count, live = 0, set[str]()
        for entry, version in self._lines:
            if isinstance(entry.key, m.ConsumerGroupRegularExpressionKey):
                count += version is not None
                (live.discard if version is None else live.add)(entry.key.regular_expression)
        return count, live

    def records(self, at_least: int = 0) -> list[object]:
        """What the program wrote; records of one kind, and tombstones, are in no order side by side."""
        self._lines += self.log.read([self.group_id], at_least - len(self._lines), 5.0)
        normal: list[object] = []
        for _, run in groupby(self._lines, self._kind):
            normal += sorted(((self.normal(record), version) for record, version in run), key=repr)
        return normal

    def _kind(self, line: Line) -> str:
        return "tombstone" if line[1] is None else type(line[0].key).__name__

    def normal(self, value: object, name: str = "") -> object:
        """A message as plain values, with symbols for ids."""
        if isinstance(value, Message):
            return (type(value).__name__, *self._fields(value))
        if hasattr(value, "key"):
            return (type(value).__name__, self.normal(value.key), self.normal(getattr(value, "value", None)))
        if isinstance(value, list | tuple):
            parts = [self.normal(one) for one in value if self._is_mine(one)]
            return tuple(sorted(parts, key=repr))
        if name in _TIMES:
            return value == -1
        if name == "assignment" and isinstance(value, bytes) and value:
            return self.normal(decode_assignment(value).assigned_partitions)
        if isinstance(value, bytes):
            return self.name_by_id.get(value, value)
        return self._symbolic(value) if isinstance(value, str) else value

    def _fields(self, message: Message) -> Sequence[tuple[str, object]]:
        return [(one, self.normal(getattr(message, one), one)) for one in message.__slots__ if one not in _OWN | _LATER]

    def _symbolic(self, text: str) -> str:
        for symbol, belief in self.beliefs.items():
            if belief.member_id != symbol:
                text = text.replace(belief.member_id, f"<{symbol}>")
        return text

    def _is_mine(self, value: object) -> bool:
        return type(value).__name__ != "ListedGroup" or value.group_id == self.group_id  # type: ignore[attr-defined]
