"""A member costs the same in a small and in a large group."""

import sys
from collections.abc import Callable
from time import thread_time

import pytest

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import JoinPhase
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message

SMALL, LARGE = 500, 8_000
GIVES_ID, KEEPS_MEMBER = 4, 3
"""Versions of JoinGroup: in the first one a member must come again with its new id."""


class Group:
    """A classic group of which members join, sync and leave."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(Settings())
        self.calls = 0

    def settle(self, result: Result) -> None:
        for offset, record in enumerate(result.records):
            self.coordinator.replay(record, offset, -1)
        for change in result.soft:
            self.coordinator.apply(change)

    def call(self, request: Message, version: int) -> None:
        self.calls += 1
        call = GroupCall(self.calls, request, version, "c", "/h", str(self.calls), None)
        self.settle(self.coordinator.handle(call, 0))

    def join(self, members: int, version: int, instance: str | None = None) -> None:
        protocols = [m.JoinGroupRequestProtocol("range", b""), m.JoinGroupRequestProtocol("sticky", b"")]
        for number in range(members):
            name = None if instance is None else f"{instance}{number}"
            self.call(m.JoinGroupRequest("g", 30_000, 30_000, "", name, "consumer", protocols), version)

    def end_join_phase(self) -> None:
        for _ in range(2):  # the first one waits for more members
            self.settle(self.coordinator.expire(JoinPhase("g"), 0))

    @property
    def members(self) -> list[str]:
        return list(self.coordinator.state.groups["g"].roster.members)  # type: ignore[attr-defined]


def joining(version: int, instance: str | None = None) -> Callable[[Group, int], None]:
    return lambda group, members: group.join(members, version, instance)


def sync(group: Group, members: int) -> None:
    for member_id in group.members[1:]:
        group.call(m.SyncGroupRequest("g", 1, member_id), 3)


def leave(group: Group, members: int) -> None:
    for member_id in group.members:
        group.call(m.LeaveGroupRequest("g", "", [m.MemberIdentity(member_id)]), 3)


def miss_the_next_generation(group: Group, members: int) -> None:
    group.join(1, KEEPS_MEMBER)
    group.end_join_phase()
    assert len(group.members) == 1


ACTS: dict[str, Callable[[Group, int], None]] = {
    "get ids": joining(GIVES_ID),
    "join": joining(KEEPS_MEMBER),
    "join with instance ids": joining(GIVES_ID + 1, "i"),
    "sync": sync,
    "leave": leave,
    "miss the next generation": miss_the_next_generation,
}


def cost(act: Callable[[Group, int], None], members: int) -> float:
    """CPU time a member; all but those that join are of a group that is there."""
    group = Group()
    if act in (sync, leave, miss_the_next_generation):
        group.join(members, KEEPS_MEMBER)
        group.end_join_phase()
    began = thread_time()
    act(group, members)
    return (thread_time() - began) / members


@pytest.mark.slow
@pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy's collector and compiler cost more than the members"
)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_member_costs_as_much_in_a_large_group(act: Callable[[Group, int], None]) -> None:
    cost(act, 10)
    # Some tries: a pause of the collector is not there each time, a cost that grows is.
    assert any(cost(act, LARGE) < 4 * cost(act, SMALL) for _ in range(8))
