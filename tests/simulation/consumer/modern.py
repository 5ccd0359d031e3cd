"""A consumer of the consumer protocol (KIP-848), as correct as its network lets it be."""

from dataclasses import dataclass

from tests.simulation.consumer.world import ConsumerWorld
from tests.simulation.life import Client

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import Assignment
from groupkeeper.protocol.primitives import ZERO_UUID, Message

BACKOFF_MS = 200
HEARTBEAT_MS = 4_000


@dataclass(frozen=True, slots=True)
class Configured:
    """What a consumer is configured to."""

    client_id: str
    group_id: str
    instance_id: str | None
    rebalance_timeout_ms: int
    version: int
    assignor: str | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """Names and a regular expression; None is no expression."""

    names: tuple[str, ...]
    regex: str | None = None


class Modern(Client):
    """One process; after a crash another one takes over its configuration.

    Attributes:
        owned: (topic id, partition) that it works on.
    """

    world: ConsumerWorld

    def __init__(self, world: ConsumerWorld, configured: Configured, subscription: Subscription) -> None:
        super().__init__(configured.client_id)
        self.world = world
        self.configured = configured
        self.subscription = subscription
        self.is_running = False
        self.member_id = ""
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self._target: set[tuple[bytes, int]] | None = None
        self._is_asking = False
        self._must_ask = False
        self._is_revoking = False
        self._needs_full = True
        self._said: tuple[Subscription, frozenset[tuple[bytes, int]]] | None = None

    # --- its life

    def start(self) -> None:
        """Another process."""
        self._begin()
        self.is_running = True
        # Members of version 0 get their id from the coordinator.
        self.member_id = f"{self.configured.client_id}.{self._turn}" if self.configured.version else ""
        self._work()

    def crash(self) -> None:
        """Stops without a word; what it sent may still arrive."""
        self._begin()

    def _begin(self) -> None:
        self._turn += 1
        self.is_running = self._is_asking = self._must_ask = self._is_revoking = False
        self._abandon()

    def _abandon(self) -> None:
        self.epoch, self.owned, self._target = 0, set(), None
        self._needs_full = True

    def leave(self, *, for_good: bool) -> None:
        """Stops and says so; a static member may come back."""
        epoch = -1 if for_good or self.configured.instance_id is None else -2
        request = m.ConsumerGroupHeartbeatRequest(
            self.configured.group_id, self.member_id, epoch, self.configured.instance_id
        )
        has_joined = self.epoch > 0
        self._begin()
        if has_joined:
            self._send(request, self.configured.version, lambda _: None)

    def resubscribe(self, subscription: Subscription) -> None:
        """Wants other topics from now on."""
        self.subscription = subscription
        if self.is_running and self.epoch > 0:
            self._ask()

    # --- heartbeats

    def _work(self) -> None:
        self._later(HEARTBEAT_MS, self._work)
        self._ask()
        if self.epoch > 0 and self.world.random.random() < 0.3:
            self._commit()

    def _ask(self) -> None:
        if self._is_asking:
            self._must_ask = True
            return
        self._is_asking, self._must_ask = True, False
        configured, owned = self.configured, frozenset(self.owned)
        is_full = self._needs_full or self._said is None or self.epoch == 0
        has_other_topics = is_full or self._said is None or self._said[0] != self.subscription
        has_moved = is_full or self._said is None or self._said[1] != owned
        request = m.ConsumerGroupHeartbeatRequest(
            configured.group_id,
            self.member_id,
            self.epoch,
            configured.instance_id,
            rebalance_timeout_ms=configured.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=list(self.subscription.names) if has_other_topics else None,
            subscribed_topic_regex=(self.subscription.regex or "") if has_other_topics and configured.version else None,
            server_assignor=configured.assignor if is_full else None,
            topic_partitions=_by_topic(owned) if has_moved else None,
        )
        self._said = self.subscription, owned
        self._send(request, configured.version, self._told)

    def _told(self, response: Message | None) -> None:
        self._is_asking = False
        if response is None:
            self._try_again(BACKOFF_MS)
            return
        assert isinstance(response, m.ConsumerGroupHeartbeatResponse)
        match response.error_code:
            case 0:
                self.member_id, self.epoch = response.member_id or self.member_id, response.member_epoch
                self._needs_full = False
                if response.assignment is not None:
                    self._target = _flat(response.assignment)
                self._reconcile()
                if self._must_ask:
                    self._ask()
            case errors.UnknownMemberId.code | errors.FencedMemberEpoch.code:
                self._abandon()
                self._try_again(BACKOFF_MS)
            case errors.GroupIdNotFound.code if self.epoch > 0:
                self._abandon()
                self._try_again(BACKOFF_MS)
            case errors.UnreleasedInstanceId.code:
                self._try_again(2_000)
            case errors.FencedInstanceId.code | errors.GroupMaxSizeReached.code | errors.GroupIdNotFound.code:
                self.crash()
            case _:
                self._try_again(BACKOFF_MS)

    def _try_again(self, after_ms: int) -> None:
        self._needs_full = True
        self._later(after_ms, self._ask)

    def _reconcile(self) -> None:
        """Gives back first, which may take its time, and then works on what is new."""
        if self._target is None or self._is_revoking or self.owned == self._target:
            return
        if self.owned <= self._target:
            self.owned = set(self._target)
            self._ask()
            return
        self._is_revoking = True
        longest_ms = self.configured.rebalance_timeout_ms * self.world.random.choice((1, 4))
        is_slow = self.world.chance(self.world.plan.slow)
        self._later(self.world.random.randint(0, longest_ms) if is_slow else 20, self._revoked)
        if self.world.random.random() < 0.5:
            self._commit()

    def _revoked(self) -> None:
        self._is_revoking = False
        if self._target is not None:
            self.owned &= self._target
            self._ask()
            self._reconcile()

    # --- commits

    def _commit(self) -> None:
        """Commits some of what it owns."""
        names = self.world.facts.topics.name_by_id
        mine = sorted(one for one in self.owned if one[0] in names)
        if not mine:
            return
        random = self.world.random
        with_id = random.random() < 0.5
        topics: dict[bytes, list[m.OffsetCommitRequestPartition]] = {}
        for topic_id, partition in random.sample(mine, random.randint(1, len(mine))):
            self._position += 1
            topics.setdefault(topic_id, []).append(m.OffsetCommitRequestPartition(partition, self._position))
        request = m.OffsetCommitRequest(
            self.configured.group_id,
            self.epoch,
            self.member_id,
            self.configured.instance_id,
            topics=[
                m.OffsetCommitRequestTopic(names[topic_id], topic_id if with_id else ZERO_UUID, partitions)
                for topic_id, partitions in topics.items()
            ],
        )
        self._send(request, 10 if with_id else 9, _ignore)


def _ignore(response: Message | None) -> None:
    """Whether it was stored is the checkers' to judge; what is refused is committed again later."""


def _by_topic(owned: frozenset[tuple[bytes, int]]) -> list[TopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(owned):
        topics.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in topics.items()]


def _flat(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic.topic_id, partition) for topic in assignment.topic_partitions for partition in topic.partitions}
