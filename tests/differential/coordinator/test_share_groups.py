"""The same share groups on Apache Kafka 4.4.0 and on our broker: the same answers, the same state and records of it.

Programs are random, but for the time that an assignment may take: members are asked until they are settled.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.differential.pair import Asked, Step, seeds, take_steps
from tests.patience import until

from groupkeeper.broker.shares.state_host import coordinator_key
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import alter_share_group_offsets_request as altering
from groupkeeper.protocol.messages import delete_share_group_offsets_request as deleting
from groupkeeper.protocol.messages import delete_share_group_state_request as forgetting
from groupkeeper.protocol.messages import describe_share_group_offsets_request as describing
from groupkeeper.protocol.messages import initialize_share_group_state_request as initializing
from groupkeeper.protocol.messages import read_share_group_state_request as reading
from groupkeeper.protocol.messages import read_share_group_state_summary_request as looking
from groupkeeper.protocol.messages import write_share_group_state_request as writing
from groupkeeper.protocol.primitives import Message, RootMessage

STEPS = 40
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}
TOPICS = {"t": 2, "u": 1}
_IGNORED = frozenset({"throttle_time_ms", "authorized_operations"})


class Side(Asked):
    """One broker, with the topics and group of one program."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.group_id = ""
        self.names: dict[bytes, str] = {}
        self.ids: dict[str, bytes] = {}
        self.epochs: dict[str, int] = {}

    def begin(self, program: str) -> None:
        self.group_id, self.names, self.ids, self.epochs = program, {}, {}, {}
        topics = [m.CreatableTopic(f"{program}-{name}", count, 1) for name, count in TOPICS.items()]
        answer = self.pool.ask(m.CreateTopicsRequest(topics, 10_000), 7)
        for topic in answer.topics:
            assert topic.error_code == 0
            name = topic.name.rpartition("-")[2]
            self.names[topic.topic_id], self.ids[name] = name, topic.topic_id
        until(lambda: self.coordinator_error(0, program) == 0)
        key = SharePartitionKey(program, self.ids["u"], 0)
        until(lambda: self.coordinator_error(2, coordinator_key(key)) == 0)
        until(lambda: self._summary_error() == 0)

    def _summary_error(self) -> int:
        topics = [looking.ReadStateSummaryData(self.ids["u"], [looking.PartitionData(0)])]
        request = looking.ReadShareGroupStateSummaryRequest(self.group_id, topics)
        return self.pool.ask(request, 1).results[0].partitions[0].error_code

    def topic(self, name: str) -> str:
        return f"{self.group_id}-{name}"

    def ask(self, request: RootMessage, version: int) -> object:
        return self.said(self.pool.ask(request, version))

    def said(self, value: object) -> object:
        """An answer without what differs for good reasons: ids, times, the order of lists that have none."""
        if isinstance(value, Message):
            return {name: self.said(getattr(value, name)) for name in value.__slots__ if name not in _IGNORED}
        if isinstance(value, list | tuple):
            return sorted((self.said(one) for one in value), key=repr)
        if isinstance(value, bytes):
            return self.names.get(value, value.hex())
        return value.replace(self.group_id, "G") if isinstance(value, str) else value

    # --- groups

    def _beat(self, member_id: str, epoch: int, names: list[str] | None = None) -> m.ShareGroupHeartbeatResponse:
        topics = None if names is None else [self.topic(name) for name in names]
        return self.pool.ask(m.ShareGroupHeartbeatRequest(self.group_id, member_id, epoch, None, topics), 1)

    def join(self, member_id: str, names: list[str]) -> object:
        answer = self._beat(member_id, 0, names)
        if answer.error_code:
            return self.said(answer)
        self.epochs[member_id] = answer.member_epoch
        return self._settle()

    def _settle(self) -> object:
        """Beats until all members have the same epoch and everything they subscribe to is read by somebody."""
        quiet = 0
        while quiet < 8:
            before = dict(self.epochs)
            for member_id in self.epochs:
                answer = self._beat(member_id, self.epochs[member_id])
                assert answer.error_code == 0, answer
                self.epochs[member_id] = answer.member_epoch
            quiet = quiet + 1 if self.epochs == before else 0
            time.sleep(0.05)
        return self.describe()

    def describe(self) -> object:
        """State, members, and how often each partition is assigned: to whom, and after how many epochs, may differ."""
        (group,) = self.pool.ask(m.ShareGroupDescribeRequest([self.group_id]), 1).groups
        held = Counter(
            (topic.topic_name.rpartition("-")[2], partition)
            for member in group.members
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        )
        return group.error_code, group.group_state, sorted(one.member_id for one in group.members), sorted(held.items())

    def beat_wrongly(self, member_id: str, by: int) -> object:
        answer = self._beat(member_id, self.epochs.get(member_id, 5) + by)
        return answer.error_code

    def leave(self, member_id: str) -> object:
        answer = self._beat(member_id, -1)
        self.epochs.pop(member_id, None)
        return answer.error_code, answer.member_epoch, self._settle()

    def alter(self, name: str, offsets: dict[int, int]) -> object:
        partitions = [altering.AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
        topics = [altering.AlterShareGroupOffsetsRequestTopic(self.topic(name), partitions)]
        return self.ask(altering.AlterShareGroupOffsetsRequest(self.group_id, topics), 0)

    def delete_offsets(self, names: list[str]) -> object:
        topics = [deleting.DeleteShareGroupOffsetsRequestTopic(self.topic(name)) for name in names]
        return self.ask(deleting.DeleteShareGroupOffsetsRequest(self.group_id, topics), 0)

    def delete_group(self) -> object:
        return self.ask(m.DeleteGroupsRequest([self.group_id]), 2)

    def offsets(self, names: list[str] | None) -> object:
        topics = None
        if names is not None:
            # Asked for a partition that the topic doesn't have, Apache Kafka may give no answer at all.
            wanted = {name: list(range(TOPICS.get(name, 1))) for name in names}
            topics = [
                describing.DescribeShareGroupOffsetsRequestTopic(self.topic(name), partitions)
                for name, partitions in wanted.items()
            ]
        group = describing.DescribeShareGroupOffsetsRequestGroup(self.group_id, topics)
        return self.ask(describing.DescribeShareGroupOffsetsRequest([group]), 1)

    # --- share state of a group of its own, whose epochs the program knows

    def initialize(self, partition: int, state_epoch: int, start_offset: int) -> object:
        data = initializing.PartitionData(partition, state_epoch, start_offset)
        topics = [initializing.InitializeStateData(self.ids["t"], [data])]
        return self.ask(initializing.InitializeShareGroupStateRequest("state", topics), 0)

    def write(self, partition: int, epochs: tuple[int, int], start_offset: int, batches: list[list[int]]) -> object:
        added = [writing.StateBatch(*batch) for batch in batches]
        data = writing.PartitionData(partition, *epochs, start_offset, len(batches), added)
        topics = [writing.WriteStateData(self.ids["t"], [data])]
        return self.ask(writing.WriteShareGroupStateRequest("state", topics), 1)

    def read(self, partition: int, leader_epoch: int) -> object:
        topics = [reading.ReadStateData(self.ids["t"], [reading.PartitionData(partition, leader_epoch)])]
        answer = self.ask(reading.ReadShareGroupStateRequest("state", topics), 0)
        summary = [looking.ReadStateSummaryData(self.ids["t"], [looking.PartitionData(partition)])]
        return answer, self.ask(looking.ReadShareGroupStateSummaryRequest("state", summary), 1)

    def forget(self, partition: int) -> object:
        topics = [forgetting.DeleteStateData(self.ids["t"], [forgetting.PartitionData(partition)])]
        return self.ask(forgetting.DeleteShareGroupStateRequest("state", topics), 0)


def program(seed: int) -> Iterator[Step]:
    """Most steps make sense, some don't."""
    chance = random.Random(seed)
    yield "initialize", 0, 1, 0
    for _ in range(STEPS):
        kind = chance.choices(["state", "group", "offsets"], [4, 1, 1])[0]
        yield {"state": _state_step, "group": _group_step, "offsets": _offsets_step}[kind](chance)


def _state_step(chance: random.Random) -> Step:
    partition = chance.choice([0, 0, 0, 1, 2, -1])
    match chance.choices(["initialize", "write", "read", "forget"], [2, 8, 4, 1])[0]:
        case "initialize":
            return "initialize", partition, chance.randint(0, 3), chance.randint(-1, 20)
        case "write":
            batches = []
            for _ in range(chance.randint(0, 4)):
                first = chance.randint(0, 40)
                batches.append([first, first + chance.randint(0, 9), chance.choice([0, 2, 4]), chance.randint(1, 3)])
            epochs = chance.choice([-1, 0, 1, 2, 3]), chance.choice([-1, 0, 1, 2, 3])
            return "write", partition, epochs, chance.randint(-1, 25), batches
        case "read":
            return "read", partition, chance.randint(-1, 4)
        case _:
            return "forget", partition


def _group_step(chance: random.Random) -> Step:
    member_id = chance.choice("abc")
    match chance.choices(["join", "leave", "wrong", "describe", "delete"], [4, 4, 2, 1, 1])[0]:
        case "join":
            return "join", member_id, chance.choice([["t"], ["t", "u"], ["t", "nope"]])
        case "leave":
            return "leave", member_id
        case "wrong":
            return "beat_wrongly", member_id, chance.choice([-100, 100])
        case "describe":
            return ("describe",)
        case _:
            return ("delete_group",)


def _offsets_step(chance: random.Random) -> Step:
    names = chance.choice([["t"], ["u", "nope"], ["t", "u"]])
    match chance.choice(["alter", "delete", "all", "named"]):
        case "alter":
            return "alter", chance.choice("tu"), {0: chance.randint(0, 9), chance.choice([1, 7]): 3}
        case "delete":
            return "delete_offsets", names
        case "all":
            return "offsets", None
        case _:
            return "offsets", names


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_share_groups(sides: tuple[Side, Side]) -> None:  # GS-01 … GS-19
    for seed in seeds(12):
        take_steps(sides, program(seed), f"p{seed}")
