"""Checkers of what makes a coordinator trustworthy: computing changes nothing, and a restart changes no answer."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from random import Random

from tests.memory_shell import MemoryShell, replayed
from tests.simulation.classic.plan import TOPICS
from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.coordinator.kernel.value_map import ValueMap
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup
from groupkeeper.protocol.primitives import Message

SETTLED = ("Stable", "Empty")


def frozen(value: object) -> object:
    """A deep copy as plain tuples, to compare with later."""
    if value is None or isinstance(value, str | bytes | int | float | Enum):
        return value
    if isinstance(value, Mapping | ValueMap):
        return tuple((frozen(key), frozen(item)) for key, item in value.items())
    if isinstance(value, Set):
        return frozenset(frozen(item) for item in value)
    if isinstance(value, Sequence):
        return tuple(frozen(item) for item in value)
    if is_dataclass(value):
        return (type(value), *(frozen(getattr(value, field.name)) for field in fields(value)))
    if isinstance(value, Message):
        return (type(value), *(frozen(getattr(value, name)) for name in type(value).__slots__))
    return (type(value), frozen(vars(value)))


class Purity(Checker):  # the architecture: handlers compute, replay changes
    """Computing a result changes neither the coordinator nor the request; a sample of the calls is looked at. The same
    request in the same moment gets the same result.
    """

    def __init__(self, facts: Facts, random: Random, share: float) -> None:
        super().__init__(facts)
        self._random = random
        self._share = share

    def around(self, coordinator: Coordinator, compute: Callable[[], Result]) -> Result:
        if self._random.random() >= self._share:
            return compute()
        before = frozen(coordinator)
        result = compute()
        if frozen(coordinator) != before:
            self.fail("", f"computing {result} changed the coordinator")
        if compute() != result:
            self.fail("", f"computed again, {result} is different")
        return result


class Repetition(Checker):  # the table of section 6.2
    """A request repeated at once gets the same answer, and the log gets no records. It is asked of a sample, beside the
    real course of things: computing an answer has no effect.
    """

    QUESTIONS = (
        m.HeartbeatRequest,
        m.SyncGroupRequest,
        m.OffsetFetchRequest,
        m.DescribeGroupsRequest,
        m.ListGroupsRequest,
    )

    def __init__(self, facts: Facts, random: Random, share: float) -> None:
        super().__init__(facts)
        self._random = random
        self._share = share
        self._failed: GroupCall | TimerKey | None = None
        self.shell: MemoryShell | None = None

    def on_append_failed(self, cause: GroupCall | TimerKey | None) -> None:
        self._failed = cause

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if was_parked or call is self._failed or self._random.random() >= self._share:
            return
        # Who joins without an id can't be recognised.
        if isinstance(request, self.QUESTIONS) or (isinstance(request, m.JoinGroupRequest) and request.member_id):
            assert self.shell is not None
            again = self.shell.coordinator.handle(call, self.facts.now_ms)
            if again.records or again.response != response:
                self.fail(getattr(request, "group_id", ""), f"{request} was told {response}, repeated {again}")


class Restart(Checker):  # GR-03 … GR-06, GC-27
    """A restart gives equal answers: the same groups and offsets, and of groups that do not rebalance the same
    description. Checked at every restart, and against a coordinator made of the log every now and then.
    """

    def __init__(self, facts: Facts, random: Random, groups: Sequence[str], share: float) -> None:
        super().__init__(facts)
        self._random = random
        self._groups = groups
        self._share = share
        self._before: dict[str, object] = {}
        self.shell: MemoryShell | None = None

    def on_tick(self) -> None:
        if self.shell is not None and self._random.random() < self._share:
            self._compare(self._answers(self.shell.coordinator), replayed(self.shell.log, self.shell.settings))

    def before_restart(self, shell: MemoryShell) -> None:
        self._before = self._answers(shell.coordinator)

    def on_restart(self) -> None:
        assert self.shell is not None
        self._compare(self._before, self.shell.coordinator)

    def _compare(self, before: dict[str, object], coordinator: Coordinator) -> None:
        after = self._answers(coordinator)
        in_log = {*self.facts.group_values, *(group_id for group_id, _, _ in self.facts.offset_values)}
        assert self.shell is not None
        max_size = self.shell.settings.group_max_size
        # A group that is larger than allowed rebalances at once (GC-27); absent static members make it so.
        too_large = {key for key, value in self.facts.group_values.items() if len(value.members) > max_size}
        for question, answer in before.items():
            group_id, _, what = question.partition(": ")
            if group_id not in in_log:
                # A simple group whose offsets are all deleted is in no compacted log (GR-05).
                continue
            is_settled = before[f"{group_id}: state"] in SETTLED and group_id not in too_large
            if (is_settled or what == "offsets") and after[question] != answer:
                self.fail(group_id, f"{what} before a restart: {answer}; after it: {after[question]}")
            if after[f"{group_id}: state"] not in (*SETTLED, "Dead", "PreparingRebalance"):
                self.fail(group_id, f"{after[f'{group_id}: state']} after a restart")

    def _answers(self, coordinator: Coordinator) -> dict[str, object]:
        def ask(request: Message, version: int) -> Result:
            return coordinator.handle(GroupCall(-1, request, version), self.facts.now_ms)

        listed = ask(m.ListGroupsRequest(), 5).response
        assert isinstance(listed, m.ListGroupsResponse)
        answers: dict[str, object] = {}
        for group_id in self._groups:
            described = ask(m.DescribeGroupsRequest([group_id]), 6).response
            assert isinstance(described, m.DescribeGroupsResponse)
            topics = [
                m.OffsetDeleteRequestTopic(topic, [m.OffsetDeleteRequestPartition(number) for number in range(count)])
                for topic, count in TOPICS.items()
            ]
            offsets = ask(m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id, topics=None)]), 9)
            answers |= {
                f"{group_id}: state": described.groups[0].group_state,
                f"{group_id}: description": _comparable(described.groups[0]),
                f"{group_id}: listing": [frozen(group) for group in listed.groups if group.group_id == group_id],
                f"{group_id}: offsets": _unordered(offsets.response),
                f"{group_id}: deletable offsets": _unordered(ask(m.OffsetDeleteRequest(group_id, topics), 0)),
                f"{group_id}: deletable": frozen(ask(m.DeleteGroupsRequest([group_id]), 2).response),
            }
        return answers


def _comparable(group: DescribedGroup) -> object:
    """Members are in no particular order."""
    members = sorted((frozen(member) for member in group.members), key=repr)
    return group.error_code, group.group_state, group.protocol_type, group.protocol_data, members


def _unordered(value: object) -> object:
    """Topics and partitions in an order of their own."""
    copy = frozen(value)
    return _sorted(copy)


def _sorted(value: object) -> object:
    return tuple(sorted((_sorted(item) for item in value), key=repr)) if isinstance(value, tuple) else value
