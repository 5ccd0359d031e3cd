"""Checkers of who works on what: told at the coordinator's door, where a lost answer counts as heard."""

from collections.abc import Iterable

from tests.simulation.consumer.facts import ConsumerChecker, ConsumerFacts

from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_assignment, decode_subscription
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.offsets_topic import Entry
from groupkeeper.protocol.primitives import Message

Place = tuple[bytes, int]
"""Topic id and partition."""


class Custody(ConsumerChecker):  # GN-12, GN-13, GM-03, GM-04
    """No partition is with two members at once. A member has what it was told to have until it says that it has it no
    more, or is no member any more; whether it may be removed is `Removal`'s to judge. A member is told only partitions
    of topics that it subscribes to, or those that it has had since before an upgrade.

    An answer to a heartbeat without an assignment means that what was told last holds: a member that has yet to take
    some of it up, and says so, may do it any time. What it says counts once the coordinator has taken it.
    """

    def __init__(self, facts: ConsumerFacts) -> None:
        super().__init__(facts)
        self.held: dict[str, dict[str, set[Place]]] = {}
        self.must_give_back_since: dict[tuple[str, str], int] = {}
        self.asked_ms: dict[tuple[str, str], int] = {}
        """When members were told last that they have to give something back, as long as they have it."""
        self._told: dict[tuple[str, str], set[Place]] = {}

    def on_request(self, call: GroupCall) -> None:
        request = call.request
        if isinstance(request, m.JoinGroupRequest) and request.protocols:
            owned = decode_subscription(request.protocols[0].metadata).owned_partitions
            self._keep(request.group_id, request.member_id, self._places((one.topic, one.partitions) for one in owned))

    def _places(self, topics: Iterable[tuple[str, Iterable[int]]]) -> set[Place]:
        known = self.facts.topics.topics
        return {(known[name].topic_id, one) for name, partitions in topics if name in known for one in partitions}

    def _keep(self, group_id: str, member_id: str, reported: set[Place]) -> None:
        held = self.held.get(group_id, {}).get(member_id)
        if held is not None:
            held &= reported

    def _note_release(self, group_id: str, member_id: str) -> None:
        """The coordinator has heard what the member has."""
        held = self.held.get(group_id, {}).get(member_id, set())
        if held <= self._told.get((group_id, member_id), set()):
            self.must_give_back_since.pop((group_id, member_id), None)
            self.asked_ms.pop((group_id, member_id), None)

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if isinstance(request, m.ConsumerGroupHeartbeatRequest):
            assert isinstance(response, m.ConsumerGroupHeartbeatResponse)
            if response.error_code == NONE:
                self._heard(request, response)
        elif isinstance(response, m.JoinGroupResponse) and response.error_code == NONE:
            assert isinstance(request, m.JoinGroupRequest)
            self._note_release(request.group_id, response.member_id)
        elif isinstance(request, m.SyncGroupRequest):
            assert isinstance(response, m.SyncGroupResponse)
            if response.error_code == NONE:
                assigned = decode_assignment(response.assignment).assigned_partitions if response.assignment else ()
                places = self._places((one.topic, one.partitions) for one in assigned)
                self._hand_out(request.group_id, request.member_id, places)

    def _heard(self, request: m.ConsumerGroupHeartbeatRequest, response: m.ConsumerGroupHeartbeatResponse) -> None:
        """The coordinator has taken a heartbeat."""
        group_id, member_id = request.group_id, response.member_id or ""
        if response.member_epoch < 0:
            self._keep(group_id, request.member_id, set())
            return
        if request.topic_partitions is not None:
            reported = {(topic.topic_id, one) for topic in request.topic_partitions for one in topic.partitions}
            self._keep(group_id, member_id, reported)
        if response.assignment is None:
            self._note_release(group_id, member_id)
            self._take(group_id, member_id, self._told.get((group_id, member_id), set()))
        else:
            told = {(topic.topic_id, one) for topic in response.assignment.topic_partitions for one in topic.partitions}
            self._hand_out(group_id, member_id, told)

    def _hand_out(self, group_id: str, member_id: str, told: set[Place]) -> None:
        self._check_subscription(group_id, member_id, told)
        held = self.held.get(group_id, {}).get(member_id, set())
        self._told[group_id, member_id] = told
        if not held <= told:
            self.must_give_back_since.setdefault((group_id, member_id), self.facts.now_ms)
            self.asked_ms[group_id, member_id] = self.facts.now_ms
        self._note_release(group_id, member_id)
        self._take(group_id, member_id, told)

    def _take(self, group_id: str, member_id: str, told: set[Place]) -> None:
        """From now on the member may work on what it is told."""
        group = self.held.setdefault(group_id, {})
        members = self._members(group_id)
        for other, held in group.items():
            if other != member_id and other in members and held & told:
                names = sorted(self._named(held & told))
                self.fail(group_id, f"{names} are with {other}, and {member_id} is told to have them")
        group.setdefault(member_id, set()).update(told)

    def _members(self, group_id: str) -> Iterable[str]:
        if group_id in self.facts.is_consumer:
            return self.facts.members.get(group_id, {})
        value = self.facts.group_values.get(group_id)
        return [] if value is None else [member.member_id for member in value.members]

    def _named(self, places: Iterable[Place]) -> list[tuple[str, int]]:
        names = self.facts.topics.name_by_id
        return [(names.get(topic_id, topic_id.hex()), one) for topic_id, one in places]

    def _check_subscription(self, group_id: str, member_id: str, told: set[Place]) -> None:
        said = self.facts.members.get(group_id, {}).get(member_id)
        if said is None or group_id not in self.facts.is_consumer:
            return
        wanted = set(said.subscribed_topic_names)
        if said.subscribed_topic_regex:
            wanted |= self.facts.matching(said.subscribed_topic_regex)
        names = self.facts.topics.name_by_id
        inherited = self.facts.inherited.get(group_id, {}).get(member_id, ())
        strange = {names[one] for one, index in told if one in names and (names[one], index) not in inherited} - wanted
        if strange:
            self.fail(group_id, f"{member_id} subscribes to {sorted(wanted)}, and is told to have {sorted(strange)}")

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        key = record.key
        if isinstance(key, m.ConsumerGroupMemberMetadataKey) and not isinstance(record, Entry):
            # Whoever comes back under this id comes with nothing.
            self.held.get(key.group_id, {}).pop(key.member_id, None)
            for by_member in (self.must_give_back_since, self.asked_ms, self._told):
                by_member.pop((key.group_id, key.member_id), None)
        elif isinstance(key, m.GroupMetadataKey) and isinstance(record, Entry):
            # A generation of the classic protocol: its leader hands out everything anew.
            self.held.pop(key.group, None)


class Commits(ConsumerChecker):  # GO-06, GO-07
    """Members of a consumer group commit with the epoch they were told, and with an older one what they have had since
    then. Nobody else does.
    """

    def __init__(self, facts: ConsumerFacts, custody: Custody) -> None:
        super().__init__(facts)
        self._custody = custody
        self._epochs: dict[tuple[str, str], int] = {}
        self._failed: GroupCall | TimerKey | None = None

    def on_append_failed(self, cause: GroupCall | TimerKey | None) -> None:
        self._failed = cause

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        if isinstance(response, m.ConsumerGroupHeartbeatResponse):
            if response.error_code == NONE and response.member_epoch > 0:
                request = call.request
                assert isinstance(request, m.ConsumerGroupHeartbeatRequest)
                self._epochs[request.group_id, response.member_id or ""] = response.member_epoch
            return
        request = call.request
        if not isinstance(request, m.OffsetCommitRequest) or request.group_id not in self.facts.is_consumer:
            return
        assert isinstance(response, m.OffsetCommitResponse)
        members = self.facts.members.get(request.group_id, {})
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        if codes == {NONE}:
            self._check_accepted(request, members.keys())
        elif call is not self._failed and self._is_entitled(request, members.keys()):
            self.fail(request.group_id, f"{request} is refused: {codes}")

    def _is_entitled(self, request: m.OffsetCommitRequest, members: Iterable[str]) -> bool:
        epoch = request.generation_id_or_member_epoch
        return request.member_id in members and self._epochs.get((request.group_id, request.member_id)) == epoch

    def _check_accepted(self, request: m.OffsetCommitRequest, members: Iterable[str]) -> None:
        if not members and request.generation_id_or_member_epoch < 0:
            return
        if request.member_id not in members:
            self.fail(request.group_id, f"a commit of somebody who is no member is accepted: {request}")
        told = self._epochs.get((request.group_id, request.member_id))
        if told is None or request.generation_id_or_member_epoch == told:
            return
        held = self._custody.held.get(request.group_id, {}).get(request.member_id, set())
        topics = self.facts.topics.topics
        for topic in request.topics:
            for partition in topic.partitions:
                if topic.name in topics and (topics[topic.name].topic_id, partition.partition_index) not in held:
                    self.fail(
                        request.group_id,
                        f"a commit of {topic.name}/{partition.partition_index} with an old epoch is accepted from"
                        f" {request.member_id}, which does not have it",
                    )
