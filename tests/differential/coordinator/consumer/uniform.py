"""Programs for the uniform assignor: who gets which partition is for each broker to choose, how many is not.

Members come, go, come back under another id, and the topic grows. Its partitions can be shared out evenly whenever all
are settled, so that every answer is determined but for the numbers of partitions.
"""

import random
from collections.abc import Sequence

from tests.differential.coordinator.consumer.compare import Different
from tests.differential.coordinator.consumer.side import Side

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from groupkeeper.protocol.primitives import Message

EVEN = 12
"""Shared out evenly among one to four members."""
CHANGES = 8
ROUNDS = 6


class CountingSide(Side):
    """Of partitions, only how many there are is compared."""

    def normal(self, value: object, name: str = "") -> object:
        if name == "partitions" and isinstance(value, Sequence) and value and isinstance(value[0], int):
            return len(value)
        return super().normal(value, name)

    def _fields(self, message: Message) -> Sequence[tuple[str, object]]:
        return [(one, value) for one, value in super()._fields(message) if one != "assignment_epochs"]


class UniformProgram:
    """One group's life on two brokers."""

    def __init__(self, sides: tuple[Side, Side], seed: int) -> None:
        self._random = random.Random(seed)
        self._sides = sides
        self._group_id = f"uniform-{seed}"
        self._topic = f"u{seed}"
        self._partitions = EVEN
        self._instances = {name: f"i{name}" for name in "abcd" if self._random.random() < 0.4}
        self._members: list[str] = []
        self._comings = 0
        self._trace = [self._group_id]

    def run(self) -> None:
        """Raises `Different`."""
        for side in self._sides:
            side.begin(self._group_id)
            side.make_topic(self._topic, EVEN)
        for _ in range(CHANGES):
            self._change()
            self._settle()
        for side in self._sides:
            side.delete_topic(self._topic)
        mine, theirs = self._sides[0].records(), self._sides[1].records()
        self._require("records", mine, theirs)

    def _require(self, text: str, mine: object, theirs: object) -> None:
        self._trace += [text, f"    {mine}"]
        if mine != theirs:
            raise Different("\n".join([*self._trace, f"    reference: {theirs}"]))

    def _ask(self, text: str, who: str, epoch: int | None = None) -> None:
        """A heartbeat with all that a member has to say; with `epoch` None as one that goes on."""
        answers = []
        for side in self._sides:
            belief = side.belief(who)
            if epoch == 0:
                belief.owned = []
            request = m.ConsumerGroupHeartbeatRequest(
                side.group_id, belief.member_id, belief.epoch if epoch is None else epoch, self._instances.get(who)
            )
            if request.member_epoch >= 0:
                request.rebalance_timeout_ms = 60_000
                request.subscribed_topic_names = [self._topic]
                request.server_assignor = "uniform"
                request.topic_partitions = [TopicPartitions(topic_id, some) for topic_id, some in belief.owned]
            answers.append(side.learn(who, side.pool.ask(request, 1)))
        self._require(text, *answers)

    def _change(self) -> None:
        missing = [name for name in "abcd" if name not in self._members]
        draw = self._random.random()
        if missing and (not self._members or draw < 0.5):
            self._come(self._random.choice(missing))
        elif draw < 0.65 and self._partitions < 4 * EVEN:
            self._partitions += EVEN
            self._trace.append(f"grow to {self._partitions}")
            for side in self._sides:
                side.grow_topic(self._topic, self._partitions)
        else:
            who = self._random.choice(self._members)
            if who in self._instances and self._random.random() < 0.5:
                self._ask(f"{who} is away", who, -2)
                self._come(who)
            else:
                self._members.remove(who)
                self._ask(f"{who} leaves", who, -1)

    def _come(self, who: str) -> None:
        """With an id of its own each time."""
        self._comings += 1
        for side in self._sides:
            side.belief(who).member_id = f"{who}{self._comings}"
        self._members = sorted({*self._members, who})
        self._ask(f"{who} joins", who, 0)

    def _settle(self) -> None:
        for number in range(ROUNDS):
            for who in self._members:
                self._ask(f"round {number}: {who}", who)
        described = [
            side.learn("", side.pool.ask(m.ConsumerGroupDescribeRequest([side.group_id]), 1)) for side in self._sides
        ]
        self._require("describe", *described)
        assert "Stable" in str(described[0]) or not self._members, self._trace
