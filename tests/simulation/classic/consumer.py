"""A consumer of the classic protocol, as correct as its network lets it be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.simulation.classic.plan import TOPICS
from tests.simulation.classic.world import World
from tests.simulation.life import Client

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscribed_topics,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition
from groupkeeper.protocol.primitives import Message

BACKOFF_MS = 100


@dataclass(frozen=True, slots=True)
class Character:
    """What a consumer is configured to."""

    client_id: str
    group_id: str
    instance_id: str | None
    protocol_names: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    join_version: int


class Phase(Enum):
    """What a consumer is doing."""

    STOPPED = "stopped"
    JOINING = "joining"
    SYNCING = "syncing"
    WORKING = "working"


class Consumer(Client):
    """One process; after a crash another one takes over its character.

    Attributes:
        owned: partitions of its assignment, while WORKING.
    """

    def __init__(self, world: World, character: Character, topics: tuple[str, ...]) -> None:
        super().__init__(character.client_id)
        self.world = world
        self.character = character
        self.topics = topics
        self.phase = Phase.STOPPED
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[tuple[str, int], ...] = ()
        self._protocol_name: str | None = None
        self._said_topics = topics

    # --- its life

    def start(self) -> None:
        self.member_id, self.generation, self.owned = "", -1, ()
        self._join()

    def crash(self) -> None:
        """Stops without a word; what it sent may still arrive."""
        self._begin(Phase.STOPPED)
        self.owned = ()

    def leave(self) -> None:
        """Stops and says so."""
        members = [m.MemberIdentity(self.member_id, self.character.instance_id)]
        request = m.LeaveGroupRequest(self.character.group_id, members=members)
        self.crash()
        self._send(request, 5, lambda _: None)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """Wants other topics from now on, or the same again."""
        self.topics = topics
        if self.phase is Phase.WORKING:
            self._join()

    def _begin(self, phase: Phase) -> None:
        self.phase = phase
        self._turn += 1

    def _lost_membership(self) -> None:
        """The coordinator does not know it any more."""
        self.member_id, self.generation, self.owned = "", -1, ()
        self._join()

    def _fenced(self) -> None:
        """Another process has its instance id: it must stop."""
        self.crash()

    # --- join

    def _join(self) -> None:
        self._begin(Phase.JOINING)
        self._said_topics = self.topics
        character = self.character
        subscription = self._subscription()
        request = m.JoinGroupRequest(
            group_id=character.group_id,
            session_timeout_ms=character.session_timeout_ms,
            rebalance_timeout_ms=character.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=character.instance_id,
            protocol_type="consumer",
            protocols=[m.JoinGroupRequestProtocol(name, subscription) for name in character.protocol_names],
        )
        self._send(request, character.join_version, self._joined, character.rebalance_timeout_ms)

    def _subscription(self) -> bytes:
        return encode_subscription(ConsumerProtocolSubscription(topics=self.topics), 0)

    def _joined(self, response: Message | None) -> None:
        if response is None:
            self._later(BACKOFF_MS, self._join)
            return
        assert isinstance(response, m.JoinGroupResponse)
        match response.error_code:
            case 0:
                self._sync(response)
            case errors.MemberIdRequired.code:
                self.member_id = response.member_id
                self._join()
            case errors.UnknownMemberId.code:
                self.member_id, self.generation = "", -1
                self._later(BACKOFF_MS, self._join)
            case errors.FencedInstanceId.code:
                self._fenced()
            case errors.GroupMaxSizeReached.code | errors.InconsistentGroupProtocol.code:
                self.crash()
            case _:
                self._later(BACKOFF_MS, self._join)

    # --- sync

    def _sync(self, joined: m.JoinGroupResponse) -> None:
        self._begin(Phase.SYNCING)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        self._protocol_name = joined.protocol_name
        assignments: Mapping[str, list[tuple[str, int]]] = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = self._plan(joined)
        request = m.SyncGroupRequest(
            group_id=self.character.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.character.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[m.SyncGroupRequestAssignment(owner, _blob(owned)) for owner, owned in assignments.items()],
        )

        def send() -> None:
            self._send(request, 5, self._synced, self.character.rebalance_timeout_ms)

        self._beat_while_syncing()
        if self.world.chance(self.world.plan.slow):
            self._later(self.world.random.randint(1_000, self.character.rebalance_timeout_ms * 2), send)
        else:
            send()

    def _plan(self, joined: m.JoinGroupResponse) -> dict[str, list[tuple[str, int]]]:
        """As the leader: who gets what."""
        subscriptions = {member.member_id: decode_subscribed_topics(member.metadata) for member in joined.members}
        return assign(subscriptions, joined.protocol_name or "", TOPICS)

    def _beat_while_syncing(self) -> None:
        self._later(self.character.heartbeat_interval_ms, self._beat_while_syncing)
        self._send(self._heartbeat(), 4, self._beaten)

    def _synced(self, response: Message | None) -> None:
        if response is None:
            self._join()
            return
        assert isinstance(response, m.SyncGroupResponse)
        if response.error_code == NONE:
            self._begin(Phase.WORKING)
            assigned = decode_assignment(response.assignment).assigned_partitions if response.assignment else ()
            self.owned = tuple((one.topic, partition) for one in assigned for partition in one.partitions)
            if self.topics == self._said_topics:
                self._work()
            else:
                self._join()
        else:
            self._refused(response.error_code)

    def _refused(self, error_code: int) -> None:
        """An error to SyncGroup, Heartbeat or OffsetCommit."""
        match error_code:
            case errors.UnknownMemberId.code:
                self._lost_membership()
            case errors.FencedInstanceId.code:
                self._fenced()
            case errors.IllegalGeneration.code:
                self.generation, self.owned = -1, ()
                self._join()
            case errors.RebalanceInProgress.code:
                self._rejoin()
            case _:
                if self.phase is Phase.SYNCING:
                    self._later(BACKOFF_MS, self._join)

    def _rejoin(self) -> None:
        """Told to rejoin: it commits what it has, and sometimes takes its time."""
        if self.phase is Phase.WORKING and self.world.random.random() < 0.5:
            self._commit(self._committed)
        self._begin(Phase.JOINING)
        if self.world.chance(self.world.plan.slow):
            self._later(self.world.random.randint(1_000, self.character.rebalance_timeout_ms * 2), self._join)
            self._dawdle()
        else:
            self._later(self.world.random.randint(0, 300), self._join)

    def _dawdle(self) -> None:
        """It goes on with the partitions it had, and with heartbeats."""
        self._later(self.character.heartbeat_interval_ms, self._dawdle)
        self._send(self._heartbeat(), 4, lambda _: None)
        if self.world.random.random() < 0.5:
            self._commit(lambda _: None)

    # --- work

    def _heartbeat(self) -> m.HeartbeatRequest:
        character = self.character
        return m.HeartbeatRequest(character.group_id, self.generation, self.member_id, character.instance_id)

    def _work(self) -> None:
        """A round of work: heartbeat, perhaps a commit."""
        if self.phase is not Phase.WORKING:
            return
        self._send(self._heartbeat(), 4, self._beaten)
        if self.world.random.random() < 0.4:
            self._commit(self._committed)
        self._later(self.character.heartbeat_interval_ms, self._work)

    def _beaten(self, response: Message | None) -> None:
        if isinstance(response, m.HeartbeatResponse) and response.error_code != NONE:
            self._refused(response.error_code)

    def _commit(self, on_answer: Callable[[Message | None], None]) -> None:
        if not self.owned:
            return
        random = self.world.random
        topics: dict[str, list[m.OffsetCommitRequestPartition]] = {}
        for topic, partition in random.sample(self.owned, random.randint(1, len(self.owned))):
            self._position += 1
            topics.setdefault(topic, []).append(
                m.OffsetCommitRequestPartition(partition, self._position, random.choice((-1, 3)), self.member_id)
            )
        request = m.OffsetCommitRequest(
            group_id=self.character.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.character.instance_id,
            topics=[m.OffsetCommitRequestTopic(topic, partitions=partitions) for topic, partitions in topics.items()],
        )
        self._send(request, 9, on_answer)

    def _committed(self, response: Message | None) -> None:
        if isinstance(response, m.OffsetCommitResponse):
            codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
            codes.discard(NONE)
            if codes:
                self._refused(codes.pop())


def _blob(owned: list[tuple[str, int]]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in owned:
        topics.setdefault(topic, []).append(partition)
    assigned = [TopicPartition(topic, partitions) for topic, partitions in topics.items()]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def assign(
    subscriptions: Mapping[str, list[str]], protocol_name: str, topics_with_counts: Mapping[str, int]
) -> dict[str, list[tuple[str, int]]]:
    """Shares the partitions of the topics among those who subscribe to them: in ranges, or in turn."""
    shares: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in subscriptions}
    for topic, count in topics_with_counts.items():
        members = sorted(member_id for member_id, topics in subscriptions.items() if topic in topics)
        for partition in range(count if members else 0):
            index = partition * len(members) // count if protocol_name == "range" else partition % len(members)
            shares[members[index]].append((topic, partition))
    return shares
