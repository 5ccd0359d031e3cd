"""A consumer of the classic protocol in a group that may change its type under it."""

from collections.abc import Mapping

from tests.simulation.classic.consumer import Character, Consumer, Phase, assign
from tests.simulation.consumer.world import ConsumerWorld

from groupkeeper.coordinator.kernel.topics_image import TopicShape
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_subscription,
    encode_subscription,
)
from groupkeeper.protocol.errors import NONE, IllegalGeneration, UnknownMemberId
from groupkeeper.protocol.messages.consumer_protocol_subscription import TopicPartition
from groupkeeper.protocol.primitives import Message

COOPERATIVE = "cooperative-sticky"


class MixedClassic(Consumer):
    """Gives back everything before it joins, or, with the cooperative protocol, what it is told to give back."""

    world: ConsumerWorld

    def __init__(
        self, world: ConsumerWorld, character: Character, topics: tuple[str, ...], subscription_version: int
    ) -> None:
        super().__init__(world, character, topics)
        self._version = subscription_version
        self._is_cooperative = COOPERATIVE in character.protocol_names
        self._kept: tuple[tuple[str, int], ...] = ()
        self._planned_for: Mapping[str, TopicShape] | None = None
        """The topics for which it leads the group; None when it does not."""

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.phase is not Phase.STOPPED

    def start(self) -> None:
        self._kept = ()
        super().start()

    def crash(self) -> None:
        self._kept = ()
        super().crash()

    def _lost_membership(self) -> None:
        self._kept = ()
        super()._lost_membership()

    def _join(self) -> None:
        self._kept = self._kept if self._is_cooperative else ()
        self.owned = self._kept
        self._planned_for = None
        super()._join()

    def _work(self) -> None:
        if self._planned_for is not None and self._planned_for != self.world.facts.topics.topics:
            # Leaders see to it that everybody hears of other topics.
            self._join()
        else:
            super()._work()

    def _joined(self, response: Message | None) -> None:
        if isinstance(response, m.JoinGroupResponse) and response.error_code == UnknownMemberId.code:
            self._kept = self.owned = ()
        super()._joined(response)
        if isinstance(response, m.JoinGroupResponse) and not response.error_code:
            is_leader = response.leader == response.member_id
            self._planned_for = self.world.facts.topics.topics if is_leader else None

    def _subscription(self) -> bytes:
        topics: dict[str, list[int]] = {}
        for topic, partition in self._kept:
            topics.setdefault(topic, []).append(partition)
        owned = [TopicPartition(topic, partitions) for topic, partitions in topics.items()]
        said = ConsumerProtocolSubscription(topics=self.topics)
        if self._version > 0:
            said = ConsumerProtocolSubscription(topics=self.topics, owned_partitions=owned)
        return encode_subscription(said, self._version)

    def _plan(self, joined: m.JoinGroupResponse) -> dict[str, list[tuple[str, int]]]:
        said = {member.member_id: decode_subscription(member.metadata) for member in joined.members}
        counts = {name: shape.partition_count for name, shape in self.world.facts.topics.topics.items()}
        planned = assign({one: list(what.topics) for one, what in said.items()}, joined.protocol_name or "", counts)
        if not self._is_cooperative:
            return planned
        owners = {
            (topic.topic, partition): one
            for one, what in said.items()
            for topic in what.owned_partitions
            for partition in topic.partitions
        }
        return {one: [place for place in places if owners.get(place, one) == one] for one, places in planned.items()}

    def _synced(self, response: Message | None) -> None:
        before = set(self._kept)
        super()._synced(response)
        if isinstance(response, m.SyncGroupResponse) and response.error_code == NONE and self.phase is Phase.WORKING:
            self._kept = self.owned
            if self._is_cooperative and before - set(self._kept):
                # What it had to give back goes to others once it has said so.
                self._later(self.world.random.randint(0, 500), self._join)

    def _refused(self, error_code: int) -> None:
        if error_code == IllegalGeneration.code:
            self._kept = ()
        super()._refused(error_code)
