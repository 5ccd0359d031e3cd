"""Checkers of what the members of one generation are told."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_assignment, decode_subscribed_topics
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.primitives import Message

GenerationKey: TypeAlias = tuple[str, int, int]
"""Group, how often it was removed, generation."""


class Ownership(Checker):  # GC-15, GC-20, GR-09
    """Within one generation no partition is owned by two members, everybody gets what a leader planned, and the plan
    is in the log before anybody gets it.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._owners: dict[GenerationKey, dict[tuple[str, int], str]] = {}
        self._plans: dict[GenerationKey, list[dict[str, bytes]]] = {}
        self._instances: dict[str, str] = {}
        """Instance ids by the member ids that static members had."""

    def on_request(self, call: GroupCall) -> None:
        request = call.request
        if isinstance(request, m.SyncGroupRequest):
            if request.group_instance_id is not None:
                self._instances[request.member_id] = request.group_instance_id
            if request.assignments:
                key = self.facts.generation_key(request.group_id, request.generation_id)
                self._plans.setdefault(key, []).append({one.member_id: one.assignment for one in request.assignments})

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if isinstance(request, m.JoinGroupRequest) and isinstance(response, m.JoinGroupResponse):
            if request.group_instance_id is not None:
                self._instances[response.member_id] = request.group_instance_id
            return
        if not isinstance(response, m.SyncGroupResponse) or response.error_code != NONE:
            return
        assert isinstance(request, m.SyncGroupRequest)
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

    def _check_plan(self, key: GenerationKey, request: m.SyncGroupRequest, assignment: bytes) -> None:
        me = self._person(request.member_id)
        planned = [
            {self._person(owner): blob for owner, blob in plan.items()}.get(me, b"")
            for plan in self._plans.get(key, ())
        ]
        if assignment not in (planned or [b""]):
            self.fail(request.group_id, f"{key}: {request.member_id} gets {assignment!r}, planned was {planned}")

    def _check_log(self, request: m.SyncGroupRequest, assignment: bytes) -> None:
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
    was_parked: bool


@dataclass(slots=True)
class Generation:
    """What members were told of one generation."""

    protocol_name: str | None
    leaders: set[str]
    began_with: int | None
    """The call that ended the join phase; None when it was a timer."""
    told: dict[str, Told] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    """Who was told when it began; static members may be told later."""
    members: Sequence[m.JoinGroupResponseMember] = ()
    """The members by what the leader was told first; empty before."""


class Agreement(Checker):  # GC-07, GC-08, GC-10, GC-11, GC-21, GO-04, K496-11
    """The members of one generation are told the same protocol and leader, only the leader is told the members, they
    are those that got an answer, no more than the group may have, and the protocol is what most of them prefer. Nobody
    works in a generation after others were told a later one, and offsets of topics that its members read are not
    deleted.
    """

    def __init__(self, facts: Facts, max_size: int) -> None:
        super().__init__(facts)
        self._max_size = max_size
        self._generations: dict[tuple[GenerationKey, int], Generation] = {}
        self._current_call_id: int | None = None
        self.latest: dict[tuple[str, int, int], int] = {}
        self._unchecked: set[tuple[GenerationKey, int]] = set()

    def on_request(self, call: GroupCall) -> None:
        self._current_call_id = call.call_id

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        match request, response:
            case m.JoinGroupRequest(), m.JoinGroupResponse(error_code=0):
                self._joined(call, request, response, was_parked=was_parked)
            case m.HeartbeatRequest(), m.HeartbeatResponse(error_code=0):
                self._check_works(request.group_id, request.generation_id)
            case m.OffsetCommitRequest(), m.OffsetCommitResponse():
                codes = {one.error_code for topic in response.topics for one in topic.partitions}
                if request.generation_id_or_member_epoch >= 0 and NONE in codes:
                    self._check_works(request.group_id, request.generation_id_or_member_epoch)
            case m.OffsetDeleteRequest(), m.OffsetDeleteResponse(error_code=0):
                self._check_deleted(request.group_id, response)

    def _latest_generation(self, group_id: str) -> int | None:
        return self.latest.get((group_id, self.facts.tombstones.get(group_id, 0), self.facts.restarts))

    def _check_works(self, group_id: str, generation: int) -> None:
        latest = self._latest_generation(group_id)
        if latest is not None and generation != latest:
            self.fail(group_id, f"somebody works in generation {generation}, others were told {latest}")

    def _check_deleted(self, group_id: str, response: m.OffsetDeleteResponse) -> None:
        value = self.facts.group_values.get(group_id)
        if value is None or self._latest_generation(group_id) not in (None, value.generation):
            return
        read = {topic for member in value.members for topic in decode_subscribed_topics(member.subscription)}
        for topic in response.topics:
            if topic.name in read and any(one.error_code == NONE for one in topic.partitions):
                self.fail(group_id, f"offsets of {topic.name} are deleted, members read it: {value}")

    def _joined(
        self, call: GroupCall, request: m.JoinGroupRequest, response: m.JoinGroupResponse, *, was_parked: bool
    ) -> None:
        group_id = request.group_id
        key = self.facts.generation_key(group_id, response.generation_id)
        self._check_order(group_id, key)
        offer = {protocol.name: protocol.metadata for protocol in request.protocols}
        # A generation that was not in the log may be given again after a restart.
        place = (key, self.facts.restarts)
        leaders = {response.leader}
        known = self._generations.setdefault(place, Generation(response.protocol_name, leaders, self._current_call_id))
        is_late = not was_parked and known.began_with != self._current_call_id
        if not is_late:
            known.joined.add(response.member_id)
        is_return = is_late and request.group_instance_id is not None and not request.member_id
        told = Told(call.call_id, offer, is_return, was_parked)
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

    def _check_leader(self, group_id: str, response: m.JoinGroupResponse, known: Generation, told: Told) -> None:
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

    def on_restart(self) -> None:
        """What is in the log goes on as it was."""
        for group_id, value in self.facts.group_values.items():
            key = self.facts.generation_key(group_id, value.generation)
            known = self._generations.get((key, self.facts.restarts - 1))
            if known is not None and value.members:
                self._generations[key, self.facts.restarts] = known
                self.latest[group_id, key[1], self.facts.restarts] = value.generation

    def on_tick(self) -> None:
        """Whoever belongs to a generation has its answer by now."""
        for place in self._unchecked:
            known = self._generations[place]
            if known.members:
                self._check_members(place[0], known)
            elif any(told.was_parked for told in known.told.values()):
                self.fail(place[0][0], f"{place[0]}: nobody is told to lead: {known}")
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
        if len(known.joined) > self._max_size:
            self.fail(group_id, f"{key}: more than {self._max_size} members: {known.joined}")
        for member in known.members:
            if member.member_id not in known.told and member.group_instance_id is None:
                self.fail(group_id, f"{key}: {member.member_id} is a member without having rejoined")
        if all(member_id in known.told for member_id in listed):
            counts = votes([list(known.told[member_id].offer) for member_id in listed])
            if counts[known.protocol_name or ""] != max(counts.values()):
                self.fail(group_id, f"{key}: {known.protocol_name} was selected, the votes are {counts}")

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        if isinstance(record.key, m.GroupMetadataKey):
            value = self.facts.group_values.get(record.key.group)
            if value is not None and value.members and value.leader not in {one.member_id for one in value.members}:
                self.fail(record.key.group, f"the leader in the log is no member: {value}")


def votes(offers: Sequence[Sequence[str]]) -> Counter[str]:
    """How many members prefer each protocol that all of them offer (GC-07)."""
    common = set.intersection(*(set(names) for names in offers))
    return Counter(next(name for name in names if name in common) for names in offers)
