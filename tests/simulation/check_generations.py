"""Checkers of what the members of one generation are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.result import Call, Record
from groupkeeper.coordinator.timers import TimerKey
from groupkeeper.protocol.consumer_protocol import decode_assignment
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse
from groupkeeper.protocol.primitives import Message

GenerationKey: TypeAlias = tuple[str, int, int]
"""Group, how often it was removed, generation."""


class Ownership(Checker):
    """Within one generation no partition is owned by two members, everybody gets what a leader planned, and the plan
    is in the log before anybody gets it.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._owners: dict[GenerationKey, dict[tuple[str, int], str]] = {}
        self._plans: dict[GenerationKey, list[dict[str, bytes]]] = {}
        self._instances: dict[str, str] = {}
        """Instance ids by the member ids that static members had."""

    def on_request(self, call: Call) -> None:
        request = call.request
        if isinstance(request, SyncGroupRequest):
            if request.group_instance_id is not None:
                self._instances[request.member_id] = request.group_instance_id
            if request.assignments:
                key = self.facts.generation_key(request.group_id, request.generation_id)
                self._plans.setdefault(key, []).append({one.member_id: one.assignment for one in request.assignments})

    def on_answer(self, call: Call, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if isinstance(request, JoinGroupRequest) and isinstance(response, JoinGroupResponse):
            if request.group_instance_id is not None:
                self._instances[response.member_id] = request.group_instance_id
            return
        if not isinstance(response, SyncGroupResponse) or response.error_code != NONE:
            return
        assert isinstance(request, SyncGroupRequest)
        key = self.facts.generation_key(request.group_id, request.generation_id)
        self._check_plan(key, request, response.assignment)
        self._check_log(request, response.assignment)
        owner = self._person(request.member_id)
        owners = self._owners.setdefault(key, {})
        assigned = decode_assignment(response.assignment).assigned_partitions if response.assignment else ()
        for one in assigned:
            for partition in one.partitions:
                other = owners.setdefault((one.topic, partition), owner)
                if other != owner:
                    self.fail(request.group_id, f"{key}: {one.topic}/{partition} is owned by {other} and {owner}")

    def _person(self, member_id: str) -> str:
        """A static member stays the same under every id."""
        return self._instances.get(member_id, member_id)

    def _check_plan(self, key: GenerationKey, request: SyncGroupRequest, assignment: bytes) -> None:
        me = self._person(request.member_id)
        planned = [
            {self._person(owner): blob for owner, blob in plan.items()}.get(me, b"")
            for plan in self._plans.get(key, ())
        ]
        if assignment not in (planned or [b""]):
            self.fail(request.group_id, f"{key}: {request.member_id} gets {assignment!r}, planned was {planned}")

    def _check_log(self, request: SyncGroupRequest, assignment: bytes) -> None:
        value = self.facts.group_values.get(request.group_id)
        stored = [] if value is None else [(member.member_id, member.assignment) for member in value.members]
        if value is None or value.generation != request.generation_id or (request.member_id, assignment) not in stored:
            self.fail(request.group_id, f"{request.member_id} is told an assignment that is not in the log: {value}")


@dataclass(slots=True)
class Told:
    """What a member said and was told of one generation; that of its latest call."""

    call_id: int
    offer: dict[str, bytes]
    is_return: bool
    """Whether it is a static member that came back without its member id."""


@dataclass(slots=True)
class Generation:
    """What members were told of one generation."""

    protocol_name: str | None
    leaders: set[str]
    told: dict[str, Told] = field(default_factory=dict)
    members: Sequence[JoinGroupResponseMember] = ()
    """The members by what the leader was told first; empty before."""


class Agreement(Checker):
    """The members of one generation are told the same protocol and leader, only the leader is told the members, they
    are those that got an answer, and the protocol is what most of them prefer.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._generations: dict[tuple[GenerationKey, int], Generation] = {}
        self.latest: dict[tuple[str, int, int], int] = {}
        self._unchecked: set[tuple[GenerationKey, int]] = set()

    def on_answer(self, call: Call, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if not isinstance(response, JoinGroupResponse) or response.error_code != NONE:
            return
        assert isinstance(request, JoinGroupRequest)
        group_id = request.group_id
        key = self.facts.generation_key(group_id, response.generation_id)
        self._check_order(group_id, key)
        offer = {protocol.name: protocol.metadata for protocol in request.protocols}
        told = Told(
            call.call_id, offer, request.group_instance_id is not None and not request.member_id and not was_parked
        )
        # A generation that was not in the log may be given again after a restart.
        place = (key, self.facts.restarts)
        known = self._generations.setdefault(place, Generation(response.protocol_name, {response.leader}))
        self._unchecked.add(place)
        if response.protocol_name != known.protocol_name or response.protocol_name not in offer:
            self.fail(group_id, f"{key}: told another protocol than {known.protocol_name}: {response}")
        self._check_leader(group_id, response, known, told)
        if response.members and not told.is_return:
            listed = {member.member_id for member in response.members}
            if known.members and listed != {member.member_id for member in known.members}:
                self.fail(group_id, f"{key}: the leader is told {listed} and {known.members}")
            known.members = response.members
        before = known.told.get(response.member_id, told)
        told.is_return = told.is_return or before.is_return
        if before.call_id <= told.call_id:
            known.told[response.member_id] = told

    def _check_order(self, group_id: str, key: GenerationKey) -> None:
        """Generations only grow."""
        _, removals, generation = key
        incarnation = (group_id, removals, self.facts.restarts)
        if generation < self.latest.get(incarnation, 1):
            self.fail(group_id, f"generation {generation} after {self.latest.get(incarnation)}")
        self.latest[incarnation] = generation

    def _check_leader(self, group_id: str, response: JoinGroupResponse, known: Generation, told: Told) -> None:
        me = response.member_id
        if response.leader not in known.leaders and not (told.is_return and response.leader == me):
            self.fail(group_id, f"told leader {response.leader}, others {known.leaders}: {response}")
        if told.is_return:
            # If it led, it leads again, known to the others by its new id (GC-20), or without being told (GC-21).
            known.leaders.add(me)
        if response.members and response.leader != me:
            self.fail(group_id, f"a follower is told the members: {response}")
        if response.leader == me and not response.members:
            self.fail(group_id, f"the leader is not told the members: {response}")

    def on_tick(self) -> None:
        """Whoever belongs to a generation has its answer by now."""
        for place in self._unchecked:
            if self._generations[place].members:
                self._check_members(place[0], self._generations[place])
        self._unchecked.clear()

    def _check_members(self, key: GenerationKey, known: Generation) -> None:
        group_id = key[0]
        listed = {member.member_id: member for member in known.members}
        if len(listed) != len(known.members):
            self.fail(group_id, f"{key}: somebody is twice among {known.members}")
        for member_id, told in known.told.items():
            member = listed.get(member_id)
            if member is None and not told.is_return:
                self.fail(group_id, f"{key}: {member_id} was told this generation, the leader does not know it")
            if member is not None and member.metadata != told.offer[known.protocol_name or ""]:
                self.fail(group_id, f"{key}: {member} offered {told.offer}")
        for member in known.members:
            if member.member_id not in known.told and member.group_instance_id is None:
                self.fail(group_id, f"{key}: {member.member_id} is a member without having rejoined")
        if all(member_id in known.told for member_id in listed):
            counts = votes([list(known.told[member_id].offer) for member_id in listed])
            if counts[known.protocol_name or ""] != max(counts.values()):
                self.fail(group_id, f"{key}: {known.protocol_name} was selected, the votes are {counts}")

    def on_record(self, record: Record, cause: Call | TimerKey | None) -> None:
        if isinstance(record.key, GroupMetadataKey):
            value = self.facts.group_values.get(record.key.group)
            if value is not None and value.members and value.leader not in {one.member_id for one in value.members}:
                self.fail(record.key.group, f"the leader in the log is no member: {value}")


def votes(offers: Sequence[Sequence[str]]) -> Counter[str]:
    """How many members prefer each protocol that all of them offer (GC-07)."""
    common = set.intersection(*(set(names) for names in offers))
    return Counter(next(name for name in names if name in common) for names in offers)
