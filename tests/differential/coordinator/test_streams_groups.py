"""The same streams groups on Apache Kafka 4.4.0 and on our broker: the same answers, member by member.

Programs are random, of members that believe their answers and run what they are told. Who gets which task, and who the
one that is over, may differ: of tasks it is compared how many members have how many.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.pair import Asked, Step, seeds, take_steps

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import offset_commit_request as committing
from groupkeeper.protocol.messages import streams_group_heartbeat_request as asking
from groupkeeper.protocol.messages.streams_group_describe_response import TopicInfo
from groupkeeper.protocol.primitives import Message

STEPS = 30
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
SETTLED_S = 20.0
TOPICS = {"t": 3, "u": 2}
SHAPES = ("plain", "counting", "joining", "missing", "never", "regex", "fixed", "empty")
_TASKS_TOLD = ("active_tasks", "standby_tasks", "warmup_tasks")
_IGNORED = frozenset({"throttle_time_ms", "authorized_operations", "assignment", "target_assignment", *_TASKS_TOLD})


class Side(Asked):
    """One broker, with the topics and groups of one program."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.program = ""
        self.told: dict[tuple[str, str], m.StreamsGroupHeartbeatResponse] = {}
        self.epochs: dict[tuple[str, str], int] = {}

    def begin(self, program: str) -> None:
        self.program, self.told, self.epochs = program, {}, {}
        topics = [m.CreatableTopic(f"{program}-{name}", count, 1) for name, count in TOPICS.items()]
        self.pool.ask(m.CreateTopicsRequest(topics, 10_000), 7)
        self.until_topics(set(TOPICS))

    def until(self, is_so: object) -> None:
        deadline = time.monotonic() + SETTLED_S
        while not is_so():  # type: ignore[operator]
            assert time.monotonic() < deadline
            self.coordinator_error(0, f"{self.program}-g")
            time.sleep(0.02)

    def until_topics(self, names: set[str]) -> None:
        """The coordinator knows the topics: a group that reads them is told that none is missing."""
        topology = asking.Topology(0, [asking.Subtopology("0", [f"{self.program}-{name}" for name in sorted(names)])])
        self.until(lambda: self._is_ready(self._beat("probe", "m", 0, topology)))
        self._beat("probe", "m", -1)
        assert self.delete("probe") == {"results": [{"group_id": "P-probe", "error_code": 0, "error_message": None}]}

    def _is_ready(self, answer: m.StreamsGroupHeartbeatResponse) -> bool:
        return answer.error_code == 0 and not answer.status

    def said(self, value: object) -> object:
        """An answer without what differs for good reasons: times, the order of lists that have none, tasks."""
        if isinstance(value, Message):
            names = [name for name in value.__slots__ if name not in _IGNORED]
            if isinstance(value, TopicInfo):
                names.remove("partitions")  # Apache Kafka tells them only once something else is written
            return {name: self.said(getattr(value, name)) for name in names}
        if isinstance(value, list | tuple):
            return sorted((self.said(one) for one in value), key=repr)
        if isinstance(value, str) and "Internal topics are missing" in value:
            return "Internal topics are missing"
        return value.replace(self.program, "P") if isinstance(value, str) else value

    def topology(self, shape: str, epoch: int) -> asking.Topology:
        t, u, r, c = (f"{self.program}-{name}" for name in ("t", "u", "r", "c"))
        part, info = asking.Subtopology, asking.TopicInfo
        changelog = [info(c, 0, 0, [asking.KeyValue("cleanup.policy", "compact")])]
        together = [asking.CopartitionGroup([0, 1], [], [])]
        shapes = {
            "plain": [part("0", [t])],
            "counting": [
                part("0", [t, u], repartition_sink_topics=[r]),
                part("1", repartition_source_topics=[info(r)], state_changelog_topics=changelog),
            ],
            "joining": [part("0", [t, u], copartition_groups=together)],
            "missing": [part("0", [t, "nope"])],
            "never": [part("0", [t], repartition_source_topics=[info(r)])],
            "regex": [part("0", [], [".*"])],
            "fixed": [part("0", [t], state_changelog_topics=[info(u)])],
            "empty": [part("0", [])],
        }
        return asking.Topology(epoch, shapes[shape])

    def _beat(
        self,
        group: str,
        member_id: str,
        epoch: int,
        topology: asking.Topology | None = None,
        version: int = 0,
        **more: object,
    ) -> m.StreamsGroupHeartbeatResponse:
        request = asking.StreamsGroupHeartbeatRequest(f"{self.program}-{group}", member_id, epoch, topology=topology)
        if epoch == 0:
            request.rebalance_timeout_ms, request.process_id = 60_000, f"process-{member_id}"
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
        for name, value in more.items():
            setattr(request, name, value)
        return self.pool.ask(request, version)

    def _believe(self, group: str, member_id: str, answer: m.StreamsGroupHeartbeatResponse) -> object:
        if not answer.error_code:
            self.epochs[group, member_id] = answer.member_epoch
            if answer.active_tasks is not None:
                self.told[group, member_id] = answer
        if any(one.status_code == 3 for one in answer.status or ()):
            self.until_topics({"r", "c"})
        return self.said(answer)

    def join(self, group: str, member_id: str, shape: str, epoch: int) -> object:
        return self._believe(group, member_id, self._beat(group, member_id, 0, self.topology(shape, epoch)))

    def beat(self, group: str, member_id: str, by: int = 0) -> object:
        has = self.told.get((group, member_id))
        tasks = [
            asking.TaskIds(one.subtopology_id, one.partitions) for one in (has.active_tasks if has else None) or ()
        ]
        epoch = self.epochs.get((group, member_id), 1) + by
        answer = self._beat(group, member_id, max(epoch, 1), active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
        return self._believe(group, member_id, answer)

    def wrong(self, group: str, member_id: str, fields: dict[str, Any]) -> object:
        return self.said(self._beat(group, member_id, self.epochs.get((group, member_id), 1), **fields))

    def leave(self, group: str, member_id: str) -> object:
        self.told.pop((group, member_id), None)
        self.epochs.pop((group, member_id), None)
        return self.said(self._beat(group, member_id, -1))

    def settle(self, group: str) -> object:
        """Beats until nothing moves."""
        quiet = 0
        while quiet < 3:
            before = dict(self.epochs), dict(self.told)
            for name, member_id in list(self.epochs):
                if name == group:
                    self.beat(name, member_id)
            quiet = quiet + 1 if (self.epochs, self.told) == before else 0
        return self.describe(group)

    def describe(self, group: str) -> object:
        answer = self.pool.ask(m.StreamsGroupDescribeRequest([f"{self.program}-{group}"]), 0)
        loads = sorted(
            sum(len(one.partitions) for one in member.assignment.active_tasks) for member in answer.groups[0].members
        )
        listed = self.pool.ask(m.ListGroupsRequest([], ["streams"]), 5).groups
        return (
            loads,
            self.said(answer),
            self.said([one for one in listed if one.group_id.startswith(f"{self.program}-")]),
        )

    def commit(self, group: str, member_id: str, by: int) -> object:
        part = committing.OffsetCommitRequestPartition(0, 5)
        topics = [committing.OffsetCommitRequestTopic(f"{self.program}-t", partitions=[part])]
        epoch = self.epochs.get((group, member_id), -1) + by
        group_id = f"{self.program}-{group}"
        return self.said(self.pool.ask(committing.OffsetCommitRequest(group_id, epoch, member_id, topics=topics), 9))

    def delete(self, group: str) -> object:
        return self.said(self.pool.ask(m.DeleteGroupsRequest([f"{self.program}-{group}"]), 2))


def program(seed: int) -> Iterator[Step]:
    """Most steps make sense, some don't."""
    chance = random.Random(seed)
    shape = chance.choice(["plain", "plain", "counting", "joining", "missing", "fixed"])
    topology_epoch = chance.choice([0, 0, 1])
    for _ in range(STEPS):
        group, member_id = chance.choice("ggh"), chance.choice("abc")
        match chance.choices(["join", "beat", "leave", "other", "wrong", "commit", "delete"], [6, 3, 3, 1, 2, 2, 1])[0]:
            case "join":
                yield "join", group, member_id, shape, topology_epoch
            case "other":
                yield "join", group, member_id, chance.choice(SHAPES), chance.choice([0, 1, 2])
            case "beat":
                yield "beat", group, member_id, chance.choice([0, 0, 7])
            case "leave":
                yield "leave", group, member_id
            case "wrong":
                yield "wrong", group, member_id, chance.choice(_WRONG)
            case "commit":
                yield "commit", group, member_id, chance.choice([0, 0, 1])
            case _:
                yield "delete", group
        yield "settle", "g"
        yield "settle", "h"


_TASKS = [asking.TaskIds("0", [9])]
_WRONG: list[dict[str, object]] = [
    {"instance_id": "i"},
    {"task_offsets": []},
    {"active_tasks": []},
    {"rack_id": " "},
    {"member_epoch": -3},
    {"member_epoch": -2},
    {"group_id": ""},
    {"topology": asking.Topology(0, [])},
    {"active_tasks": _TASKS, "standby_tasks": [], "warmup_tasks": []},
    {"active_tasks": [], "standby_tasks": [], "warmup_tasks": _TASKS},
]


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_same_streams_groups(sides: tuple[Side, Side]) -> None:
    for seed in seeds(12):
        take_steps(sides, program(seed), f"p{seed}")
