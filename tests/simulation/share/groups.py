"""Members of share groups, their coordinator, the share coordinator, and operators: a simulation.

Heartbeats and their answers are lost or arrive twice, members crash and come back, topics are made, grow and go, work
for the share coordinator takes its time or fails, coordinators start over from their logs, operators alter and delete.
Checked is what members and operators are told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tests.memory_shell import MemoryShell, Observer
from tests.simulation.share.base import START_MS, Events, MemoryShareState, Outcome, outcome_of
from tests.simulation.share.plan import GroupsPlan

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.topics_image import TopicShape, TopicsImage
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupIdNotFound,
    KafkaError,
    NonEmptyGroup,
    UnknownMemberId,
)
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup
from groupkeeper.protocol.primitives import Message

GROUPS = ("g", "g-a")
TOPICS = {"t1": 3, "t2": 2, "t3": 1}
SUBSCRIPTIONS = (("t1",), ("t1", "t2"), ("t2",), ("t1", "t2", "t3"), ("t3",))
SESSION_MS = 10_000
HEARTBEAT_MS = 2_000
SLOWEST_MS = 300
RETRIES_MS = 5_000
"""A removal that could not be stored is tried again every half a second."""
CALM_MS = 90_000
LEAVE = -1

Place = tuple[bytes, int]


@dataclass(slots=True)
class Seat:
    """A membership as its coordinator must see it.

    Attributes:
        heard_ms: when a heartbeat was last accepted.
        epochs: those that the member may name: the latest one that was handed out, and the one before.
    """

    heard_ms: int
    epochs: tuple[int, int]


@dataclass(slots=True)
class Truth:
    """What was promised.

    Attributes:
        seats: by group and member, of those that are members for sure.
        offsets: by group and place, where the share-partition begins: as an operator was told, or −1. Missing: unknown.
    """

    seats: dict[tuple[str, str], Seat] = field(default_factory=dict)
    offsets: dict[tuple[str, Place], int] = field(default_factory=dict)


class Member:
    """Sends heartbeats as a share consumer does; `assigned` is what it believes to have."""

    def __init__(self, world: World, number: int) -> None:
        random = world.events.random
        self.world = world
        self.group_id = random.choice(GROUPS)
        self.number = number
        self.lives = 0
        self.names = random.choice(SUBSCRIPTIONS)
        self.epoch = 0
        self.assigned: frozenset[Place] = frozenset()
        self.is_up = True
        self._says_names = True
        self._awaited = 0
        self._is_doubled = False
        world.events.at(random.randint(0, 5_000), self.go_on)

    @property
    def member_id(self) -> str:
        return f"m{self.number}.{self.lives}"

    def go_on(self) -> None:
        """A heartbeat, or what happens to members now and then."""
        world, plan, random = self.world, self.world.plan, self.world.events.random
        world.events.at(HEARTBEAT_MS, self.go_on)
        if not self.is_up:
            if world.events.is_calm or random.random() < 0.1:
                self.is_up = True
            return
        if world.events.chance(plan.crash):
            self._rise_as_another()
        elif world.events.chance(plan.leave):
            self._send(m.ShareGroupHeartbeatRequest(self.group_id, self.member_id, LEAVE), lambda _: None)
            self._rise_as_another()
        else:
            if world.events.chance(plan.resubscribe):
                self.names, self._says_names = random.choice(SUBSCRIPTIONS), True
            self._beat()

    def _rise_as_another(self) -> None:
        self.is_up = False
        self.lives += 1
        self._abandon()

    def _abandon(self) -> None:
        self.epoch, self.assigned, self._says_names = 0, frozenset(), True

    def _beat(self) -> None:
        self._awaited += 1
        self._is_doubled = False
        names = list(self.names) if self._says_names else None
        request = m.ShareGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, None, names)
        # Until the answer is there nothing is known to have arrived.
        self._says_names = True
        self._send(request, partial(self._hear, self.lives, self._awaited))

    def _send(self, request: m.ShareGroupHeartbeatRequest, on_answer: Callable[[Message], None]) -> None:
        events, plan = self.world.events, self.world.plan
        if events.chance(plan.lost):
            return
        events.at(events.random.randint(1, SLOWEST_MS), partial(self.world.ask, request, on_answer))
        if events.chance(plan.doubled):
            self._is_doubled = True
            events.at(events.random.randint(1, SLOWEST_MS), partial(self.world.ask, request, on_answer))

    def _hear(self, life: int, number: int, response: Message) -> None:
        assert isinstance(response, m.ShareGroupHeartbeatResponse)
        if life != self.lives or number != self._awaited or self.world.events.chance(self.world.plan.lost):
            return
        if response.error_code in (FencedMemberEpoch.code, UnknownMemberId.code, GroupIdNotFound.code):
            self._abandon()
        elif not response.error_code:
            # Of two answers only one is heard; as after one that is lost, the next heartbeat says everything.
            self._awaited += 1
            self._says_names = self._is_doubled
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = frozenset(
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                )


class World:
    """One coordinator, its share coordinator, and everybody around them."""

    def __init__(self, plan: GroupsPlan) -> None:
        self.plan = plan
        self.events = Events(plan.seed)
        self.truth = Truth()
        self.restarts = 0
        self.seen = 0
        self._topic_count = 0
        self._call_count = 0
        self._calls: dict[int, tuple[GroupCall, Callable[[Message], None]]] = {}
        self._version = 0
        self.topics: dict[str, TopicShape] = {}
        settings = Settings(
            group_share_session_timeout_ms=SESSION_MS, group_share_assignment_interval_ms=plan.assignment_interval_ms
        )
        self.share_state = MemoryShareState(self.events, self._partition_count, plan.work_fails)
        self.shell = MemoryShell(
            settings, START_MS, Observer(answered=self._answered), self._refuse_append, self._around
        )
        for name, count in TOPICS.items():
            self._set_topic(name, count)
        self.members = [Member(self, number) for number in range(plan.member_count)]
        self.events.at(1_000, self._tick)

    def _partition_count(self, topic_id: bytes) -> int:
        return next((one.partition_count for one in self.topics.values() if one.topic_id == topic_id), 0)

    def _around(self, coordinator: Coordinator, compute: Callable[[], Result]) -> Result:
        if self.events.random.random() > 0.05:
            return compute()
        before = repr(coordinator.state.groups)
        result = compute()
        if repr(coordinator.state.groups) != before:
            self.events.fail("Purity", f"computing {result} changed {before}")
        return result

    def _refuse_append(self, records: tuple[Record, ...]) -> KafkaError | None:
        return CoordinatorNotAvailable() if self.events.chance(self.plan.append_fails) else None

    # --- requests

    def ask(self, request: Message, on_answer: Callable[[Message], None]) -> None:
        self.shell.advance_to(self.events.now_ms)
        self._call_count += 1
        version = {m.AlterShareGroupOffsetsRequest: 0, m.DeleteShareGroupOffsetsRequest: 0, m.DeleteGroupsRequest: 2}
        call = GroupCall(self._call_count, request, version.get(type(request), 1), "client", "/127.0.0.1")
        self._calls[call.call_id] = (call, on_answer)
        work_before = len(self.shell.share_work)
        self.shell.call(call)
        for _ in range(work_before, len(self.shell.share_work)):
            self.events.at(self.events.random.choice((1, 1, 700, 4_000)), partial(self._do_work, self.restarts))

    def ask_now(self, request: Message) -> list[Message]:
        answers: list[Message] = []
        self.ask(request, answers.append)
        return answers

    def _answered(self, call_id: int, response: Message) -> None:
        call, on_answer = self._calls.pop(call_id)
        if isinstance(call.request, m.ShareGroupHeartbeatRequest):
            assert isinstance(response, m.ShareGroupHeartbeatResponse)
            self._check_heartbeat(call.request, response)
            self.events.at(self.events.random.randint(1, SLOWEST_MS), partial(on_answer, response))
        else:
            on_answer(response)

    def _do_work(self, life: int) -> None:
        """The turn of what was asked for first has come; the share coordinator may let it wait."""
        if life != self.restarts or not self.shell.share_work:
            return
        if self._is_working:
            self.events.at(50, partial(self._do_work, life))
            return
        self.shell.advance_to(self.events.now_ms)
        work = self.shell.begin_share_work()
        if work is None:
            self.events.note("work cannot begin")
            return
        assert isinstance(work, InitializeShares | DeleteShares)
        self._is_working = True
        waits = self.plan.work_waits and self.events.chance(self.plan.work_waits)
        self.events.at(self.events.random.choice((300, 3_000)) if waits else 0, partial(self._end_work, life, work))

    def _end_work(self, life: int, work: InitializeShares | DeleteShares) -> None:
        if life != self.restarts:
            return
        self._is_working = False
        self.shell.advance_to(self.events.now_ms)
        errors: dict[SharePartitionKey, KafkaError] = {}
        for key in work.share_partitions():
            place = (key.group_id, (key.topic_id, key.partition))
            try:
                if isinstance(work, InitializeShares):
                    offset = work.start_offsets[key.topic_id][key.partition]
                    if work.call is None and self.truth.offsets.get(place, -1) >= 0:
                        self.events.fail("Offsets", f"{place} was altered, and is to begin anew")
                    self.truth.offsets.pop(place, None)
                    self.share_state.initialize(key, work.state_epoch, offset)
                else:
                    self.truth.offsets.pop(place, None)
                    self.share_state.delete(key)
            except KafkaError as error:
                errors[key] = error
        self.events.note(f"work {work}: {errors}")
        self.shell.finish_share_work(errors)

    # --- what members are told

    def _check_heartbeat(self, request: m.ShareGroupHeartbeatRequest, response: m.ShareGroupHeartbeatResponse) -> None:
        key, now_ms, seats = (request.group_id, request.member_id), self.events.now_ms, self.truth.seats
        self.events.note(f"{key} {request.member_epoch} {request.subscribed_topic_names}: {response}")
        seat = seats.get(key)
        is_expired = seat is not None and now_ms - seat.heard_ms > SESSION_MS + RETRIES_MS
        if response.error_code:
            if request.member_epoch == LEAVE or response.error_code in (15, 16):
                return
            if response.error_code in (UnknownMemberId.code, GroupIdNotFound.code) and seat is not None:
                if now_ms - seat.heard_ms < SESSION_MS:
                    self.events.fail("Membership", f"{key} was heard {now_ms - seat.heard_ms} ms ago, and is unknown")
                del seats[key]
            elif response.error_code == FencedMemberEpoch.code and seat is not None:
                is_right = request.member_epoch in seat.epochs
                if is_right:
                    self.events.fail("Epochs", f"{key} said {request.member_epoch} and was fenced, of {seat.epochs}")
            return
        if request.member_epoch == LEAVE:
            seats.pop(key, None)
            return
        if request.member_epoch > 0:
            if is_expired and not self.shell_is_young:
                self.events.fail("Departure", f"{key} was silent for {now_ms - seat.heard_ms} ms")  # type: ignore[union-attr]
            if seat is not None and request.member_epoch not in seat.epochs:
                self.events.fail("Epochs", f"{key} said {request.member_epoch} and was heard, of {seat.epochs}")
        self._sit(key, request, response)
        self._check_assignment(request, response)

    @property
    def shell_is_young(self) -> bool:
        """Whether the coordinator began so lately that sessions from before go on."""
        return self.events.now_ms - self._began_ms <= SESSION_MS + 1

    _began_ms = START_MS
    _is_working = False

    def _sit(
        self, key: tuple[str, str], request: m.ShareGroupHeartbeatRequest, response: m.ShareGroupHeartbeatResponse
    ) -> None:
        seat = self.truth.seats.get(key)
        epoch = response.member_epoch
        if seat is None:
            self.truth.seats[key] = Seat(self.events.now_ms, (epoch, request.member_epoch))
            return
        seat.heard_ms = self.events.now_ms
        if epoch < seat.epochs[0]:
            self.events.fail("Epochs", f"{key} was told {epoch} after {seat.epochs[0]}")
        if epoch > seat.epochs[0]:
            seat.epochs = (epoch, seat.epochs[0])

    def _check_assignment(self, request: m.ShareGroupHeartbeatRequest, response: m.ShareGroupHeartbeatResponse) -> None:
        self.seen += 1
        if response.assignment is None:
            return
        names = {one.topic_id: one.name for one in self.topics.values()}
        for topic in response.assignment.topic_partitions:
            name = names.get(topic.topic_id)
            described = self.described(request.group_id)
            if name is None and described.assignment_epoch < described.group_epoch:
                continue  # until its next assignment a member keeps what it has
            if name is None:
                self.events.fail("Assignment", f"{request.member_id} was given a topic that is gone")
            if request.subscribed_topic_names is not None and name not in request.subscribed_topic_names:
                self.events.fail("Assignment", f"{request.member_id} was given {name}, {request}")
            for index in topic.partitions:
                key = SharePartitionKey(request.group_id, topic.topic_id, index)
                if key not in self.share_state.coordinator.states:
                    self.events.fail("Assignment", f"{request.member_id} was given {name}-{index} without state")

    # --- time, operators, the cluster

    def _tick(self) -> None:
        events, plan = self.events, self.plan
        events.at(1_000, self._tick)
        self.shell.advance_to(events.now_ms)
        if events.chance(plan.restart):
            self._restart()
        if events.chance(plan.topics):
            self._change_topics()
        if events.chance(plan.tinker):
            self._tinker()
        if events.random.random() < 0.02:
            self.share_state.tidy()
        self._check_offsets()

    def _restart(self) -> None:
        """The coordinators die and load their logs."""
        self.events.note("restart")
        before = [self.described(group_id) for group_id in GROUPS]
        self.restarts += 1
        self._calls.clear()
        self._is_working = False
        self.shell.load()
        self.share_state.restart()
        self._began_ms = self.events.now_ms
        # Sessions begin again, those of members that may have been removed before excepted.
        now_ms, seats = self.events.now_ms, self.truth.seats
        self.truth.seats = {key: seat for key, seat in seats.items() if now_ms - seat.heard_ms < SESSION_MS}
        for seat in self.truth.seats.values():
            seat.heard_ms = now_ms
        after = [self.described(group_id) for group_id in GROUPS]
        if [repr(one) for one in before] != [repr(one) for one in after]:
            self.events.fail("Restart", f"before: {before}; after: {after}")

    def _set_topic(self, name: str, count: int) -> None:
        shape = self.topics.get(name)
        self._topic_count += shape is None
        topic_id = self._topic_count.to_bytes(16, "big") if shape is None else shape.topic_id
        self.topics[name] = TopicShape(name, topic_id, count)
        self._show_topics()

    def _show_topics(self) -> None:
        self._version += 1
        self.shell.see_topics(TopicsImage(self._version, self._version, dict(self.topics)))

    def _change_topics(self) -> None:
        random = self.events.random
        name = random.choice(list(TOPICS))
        self.events.note(f"topic {name} changes")
        if name not in self.topics:
            self._set_topic(name, TOPICS[name])
        elif random.random() < 0.5:
            self._set_topic(name, self.topics[name].partition_count + 1)
        else:
            gone = self.topics.pop(name)
            self._show_topics()
            self.shell.remove_topics({name: gone.topic_id})
            self.share_state.remove_topic(gone.topic_id)
            self.truth.offsets = {
                place: offset for place, offset in self.truth.offsets.items() if place[1][0] != gone.topic_id
            }

    def _tinker(self) -> None:
        self.events.random.choice((self._alter, self._alter, self._delete_offsets, self._delete_group))()

    def _is_refused(self, group_id: str, error_code: int) -> bool:
        """Whether it is; checks that a group with members refuses, and one without does not because of them."""
        has_members = bool(self.described(group_id).members)
        if has_members and error_code in (0, GroupIdNotFound.code):
            self.events.fail("Agreement", f"{group_id} has members, and an operator was told {error_code}")
        if not has_members and error_code == NonEmptyGroup.code:
            self.events.fail("Agreement", f"{group_id} has no members, and an operator was told that it has")
        return error_code != 0

    def _alter(self) -> None:
        random = self.events.random
        group_id, name = random.choice(GROUPS), random.choice(list(self.topics) or ["t1"])
        shape = self.topics.get(name)
        count = 1 if shape is None else shape.partition_count
        wanted = {index: random.randint(0, 100) for index in range(random.randint(1, count))}
        parts = [m.AlterShareGroupOffsetsRequestPartition(index, offset) for index, offset in wanted.items()]
        request = m.AlterShareGroupOffsetsRequest(group_id, [m.AlterShareGroupOffsetsRequestTopic(name, parts)])

        def told(response: Message) -> None:
            assert isinstance(response, m.AlterShareGroupOffsetsResponse)
            self.events.note(f"{request}: {response}")
            if response.error_code or shape is None:
                return
            for topic in response.responses:
                for part in topic.partitions:
                    place = (group_id, (topic.topic_id, part.partition_index))
                    if not part.error_code and not self._is_being_deleted(*place):
                        self.truth.offsets[place] = wanted[part.partition_index]

        had_members = bool(self.described(group_id).members)
        self.ask(request, told)
        if had_members and self.shell.share_work and self.shell.share_work[-1].call is not None:
            last = self.shell.share_work[-1].call.request
            if last is request:
                self.events.fail("Agreement", f"{group_id} has members, and is altered")

    def _delete_offsets(self) -> None:
        random = self.events.random
        group_id, name = random.choice(GROUPS), random.choice(list(TOPICS))
        request = m.DeleteShareGroupOffsetsRequest(group_id, [m.DeleteShareGroupOffsetsRequestTopic(name)])

        def told(response: Message) -> None:
            assert isinstance(response, m.DeleteShareGroupOffsetsResponse)
            self.events.note(f"{request}: {response}")
            for topic in response.responses:
                left = [key for key in self._stored(group_id) if key.topic_id == topic.topic_id]
                if not response.error_code and not topic.error_code and left and not self.shell.share_work:
                    self.events.fail("Offsets", f"{left} were deleted and are there")

        self._let_go(group_id)
        self.ask(request, told)

    def _is_being_deleted(self, group_id: str, place: Place) -> bool:
        """Whether a deletion began after the alteration: it counts, even if a restart interrupts it."""
        group = self.shell.coordinator.state.groups.get(group_id)
        return isinstance(group, ShareGroup) and place[0] in group.has.deleting

    def _let_go(self, group_id: str) -> None:
        """Whatever becomes of a deletion: what a group without members had been altered to may be gone."""
        if not self.described(group_id).members:
            offsets = self.truth.offsets
            self.truth.offsets = {place: offset for place, offset in offsets.items() if place[0] != group_id}

    def _delete_group(self) -> None:
        group_id = self.events.random.choice(GROUPS)
        had_members = bool(self.described(group_id).members)
        answers: list[m.DeleteGroupsResponse] = []

        def told(response: Message) -> None:
            assert isinstance(response, m.DeleteGroupsResponse)
            answers.append(response)
            (result,) = response.results
            self.events.note(f"delete {group_id}: {result}")
            if result.error_code:
                return
            if self.described(group_id).error_code != GroupIdNotFound.code:
                self.events.fail("Agreement", f"{group_id} was deleted and is there")
            if self._stored(group_id) and not self.shell.share_work:
                self.events.fail("Offsets", f"{group_id} was deleted, and {self._stored(group_id)} are stored")

        self._let_go(group_id)
        self.ask(m.DeleteGroupsRequest([group_id]), told)
        if had_members and answers:
            self._is_refused(group_id, answers[0].results[0].error_code)

    def _stored(self, group_id: str) -> list[SharePartitionKey]:
        return [key for key in self.share_state.coordinator.states if key.group_id == group_id]

    def _check_offsets(self) -> None:
        """What operators were told that offsets are, they are."""
        for (group_id, (topic_id, index)), offset in self.truth.offsets.items():
            state = self.share_state.coordinator.states.get(SharePartitionKey(group_id, topic_id, index))
            if state is None or state.start_offset != offset:
                self.events.fail("Offsets", f"{group_id} {index} was altered to {offset}, and is {state}")

    def described(self, group_id: str) -> DescribedGroup:
        request = m.ShareGroupDescribeRequest([group_id])
        result = self.shell.coordinator.handle(GroupCall(-1, request, 1), self.events.now_ms)
        assert isinstance(result.response, m.ShareGroupDescribeResponse)
        return result.response.groups[0]

    # --- the end

    def live(self, steps: int) -> None:
        """Raises `Violation`."""
        for _ in range(steps):
            self.events.step()
        self.events.is_calm = True
        end_ms = self.events.now_ms + CALM_MS
        while self.events.now_ms < end_ms:
            self.events.step()
        for group_id in GROUPS:
            self._check_works(group_id, [one for one in self.members if one.group_id == group_id])
        self._die_out()

    def _check_works(self, group_id: str, members: list[Member]) -> None:  # GS-03 GS-04 GS-05 GS-06
        described = self.described(group_id)
        if not members:
            return
        fail = partial(self.events.fail, "Liveness")
        if {one.member_id for one in described.members} != {one.member_id for one in members}:
            fail(f"in {group_id} are {described.members}, not {[one.member_id for one in members]}")
        if described.group_epoch != described.assignment_epoch:
            fail(f"{group_id} is still to be assigned: {described}")
        for member in members:
            if member.epoch != described.group_epoch:
                fail(f"{member.member_id} is at {member.epoch}, {group_id} at {described.group_epoch}")
        loads = {member.member_id: len(member.assigned) for member in members}
        for name, shape in self.topics.items():
            subscribers = [member for member in members if name in member.names]
            for index in range(shape.partition_count):
                if subscribers and not any((shape.topic_id, index) in one.assigned for one in subscribers):
                    fail(f"nobody of {loads} has {name}-{index}")
        for member in members:
            names = {self.topics[name].topic_id for name in member.names if name in self.topics}
            if not {topic_id for topic_id, _ in member.assigned} <= names:
                fail(f"{member.member_id} has {member.assigned}, and wants {names}")
        if len({member.names for member in members}) == 1 and max(loads.values()) - min(loads.values()) > 1:
            self.events.fail("Balance", f"{loads}")

    def _die_out(self) -> None:  # GS-07
        """Everybody is gone without a word: groups are empty in time, stay, and can be deleted with all they had."""
        for member in self.members:
            member.go_on = lambda: None  # type: ignore[method-assign]
        end_ms = self.events.now_ms + SESSION_MS + 3_000
        while self.events.now_ms < end_ms:
            self.events.step()
        for group_id in GROUPS:
            described = self.described(group_id)
            if described.members:
                self.events.fail("Departure", f"all are gone, and {described.members}")
            answers = self.ask_now(m.DeleteGroupsRequest([group_id]))
            for _ in range(10_000):
                if answers:
                    break
                self.events.step()
            code = answers[0].results[0].error_code  # type: ignore[attr-defined]
            if code not in (0, GroupIdNotFound.code) or self._stored(group_id):
                self.events.fail("Liveness", f"{group_id} can't be deleted: {code}, {self._stored(group_id)}")


def run(seed: int, steps: int) -> Outcome:
    """One run to its end."""
    return outcome_of(World(GroupsPlan.of_seed(seed)), steps)
