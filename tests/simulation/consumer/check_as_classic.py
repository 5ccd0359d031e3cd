"""Checkers that the classic protocol has too, for consumer groups: offsets, repetition, restarts."""

from random import Random

from tests.memory_shell import MemoryShell, replayed
from tests.simulation.classic.check_coordinator import Repetition, frozen
from tests.simulation.classic.check_offsets import Committed, Offsets
from tests.simulation.classic.plan import GROUPS
from tests.simulation.consumer.facts import ConsumerChecker, ConsumerFacts

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall
from groupkeeper.coordinator.kernel.topics_image import TopicsChange
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.primitives import Message


class ConsumerOffsets(Offsets):  # GO-06, GO-10, GO-71, GM-02
    """As `Offsets`, with the rule by which offsets of consumer groups expire."""

    facts: ConsumerFacts

    def _has_expired(self, key: m.OffsetCommitKey, committed: Committed) -> bool:
        if key.group not in self.facts.is_consumer:
            return super()._has_expired(key, committed)
        for member in self.facts.members.get(key.group, {}).values():
            if key.topic in member.subscribed_topic_names:
                return False
        return self.facts.now_ms >= committed.commit_ms + self._retention_ms


class ConsumerRepetition(Repetition):  # GN-07, GN-14
    """A full heartbeat repeated at once gets the same answer."""

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if not isinstance(request, m.ConsumerGroupHeartbeatRequest):
            return
        is_full = (
            request.topic_partitions is not None
            and request.rebalance_timeout_ms != -1
            and request.subscribed_topic_names is not None
        )
        assert isinstance(response, m.ConsumerGroupHeartbeatResponse)
        # The epoch before is taken until the coordinator has heard of it once more.
        is_again = response.member_epoch == request.member_epoch > 0
        if not is_full or not is_again or call is self._failed or self._random.random() >= self._share:
            return
        assert self.shell is not None
        again = self.shell.coordinator.handle(call, self.shell.wall_ms)
        if again.response != response:
            self.fail(request.group_id, f"{request} was told {response}, repeated {again}")


class ConsumerRestart(ConsumerChecker):  # GR-03 … GR-06, GR-10
    """A consumer group is its records: another coordinator that reads the log answers the same."""

    def __init__(self, facts: ConsumerFacts, random: Random, share: float) -> None:
        super().__init__(facts)
        self._random = random
        self._share = share
        self._before: list[list[object]] = []
        self.shell: MemoryShell | None = None

    def on_tick(self) -> None:
        if self.shell is not None and self._random.random() < self._share:
            loaded = replayed(self.shell.log, self.shell.settings)
            loaded.apply(TopicsChange(self.shell.topics))
            self._compare(self._answers(self.shell.coordinator), self._answers(loaded))

    def before_restart(self, shell: MemoryShell) -> None:
        self._before = self._answers(shell.coordinator)

    def on_restart(self) -> None:
        assert self.shell is not None
        self._compare(self._before, self._answers(self.shell.coordinator))

    def _compare(self, before: list[list[object]], after: list[list[object]]) -> None:
        for group_id, left, right in zip(GROUPS, before, after, strict=True):
            if left != right:
                pairs = [f"{one}\n  {other}" for one, other in zip(left, right, strict=True) if one != other]
                self.fail(group_id, "before a restart, and after it:\n  " + "\n  ".join(pairs))

    def _answers(self, coordinator: Coordinator) -> list[list[object]]:
        def ask(request: Message, version: int) -> Message:
            response = coordinator.handle(GroupCall(-1, request, version), self.facts.now_ms).response
            assert isinstance(response, Message)
            return response

        described = ask(m.ConsumerGroupDescribeRequest(list(GROUPS)), 1)
        fetched = ask(m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(one, topics=None) for one in GROUPS]), 9)
        assert isinstance(described, m.ConsumerGroupDescribeResponse)
        assert isinstance(fetched, m.OffsetFetchResponse)
        return [
            [*_comparable(group), sorted(repr(_sorted_partitions(topic)) for topic in offsets.topics)]
            for group, offsets in zip(described.groups, fetched.groups, strict=True)
        ]


def _comparable(group: DescribedGroup) -> list[object]:
    """Members are in no particular order, and a group without records is gone."""
    if group.error_code:
        return ["not of the consumer protocol"] * 5
    members = sorted(repr(frozen(member)) for member in group.members)
    return [group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name, members]


def _sorted_partitions(topic: m.OffsetFetchResponseTopics) -> object:
    return topic.name, sorted(repr(frozen(one)) for one in topic.partitions)
