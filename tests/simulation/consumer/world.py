"""The world with topics that change, regular expressions to resolve, and connections that break between attempts."""

from functools import partial

from tests.simulation.classic.world import OPERATOR, START_MS, WORLD, OnAnswer, World
from tests.simulation.consumer.facts import ConsumerChecker, ConsumerFacts
from tests.simulation.consumer.plan import FIRST_TOPICS, ConsumerPlan

from groupkeeper.coordinator.kernel.result import GroupCall, RegexLookup
from groupkeeper.coordinator.kernel.topics_image import TopicShape
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import ZERO_UUID, Message

MOST_PARTITIONS = 8
TIMED_OUT_MS = 5_000


def _nobody(_: Message | None) -> None:
    """The connection broke, and the client has asked again on another."""


class ConsumerWorld(World):
    """See the module's text."""

    facts: ConsumerFacts
    plan: ConsumerPlan

    def make_facts(self) -> ConsumerFacts:
        return ConsumerFacts(now_ms=START_MS)

    # --- topics

    def start(self) -> None:
        """Makes the topics that are there from the beginning."""
        self._topic_count = 0
        self._lookup_count = 0
        self._batch_ends = [0]
        """Offsets at which a batch ends: the log cleaner does not stop within one."""
        for name, count in FIRST_TOPICS.items():
            self.make_topic(name, count)

    def make_topic(self, name: str, count: int) -> None:
        """A new topic, or one that had another id before."""
        self._topic_count += 1
        topic_id = self._topic_count.to_bytes(16, "big")
        topics = {**self.facts.topics.topics, name: TopicShape(name, topic_id, count)}
        self.note(WORLD, f"topic {name} with {count} partitions")
        self.shell.see_topics(self.facts.with_topics(topics, is_new=True))

    def grow_topic(self, name: str) -> None:
        """More partitions for a topic."""
        shape = self.facts.topics.topics[name]
        if shape.partition_count >= MOST_PARTITIONS:
            return
        grown = TopicShape(name, shape.topic_id, shape.partition_count + 1)
        self.note(WORLD, f"topic {name} has {grown.partition_count} partitions")
        self.shell.see_topics(self.facts.with_topics({**self.facts.topics.topics, name: grown}, is_new=False))

    def delete_topic(self, topic: str) -> None:
        """The broker forgets a topic: the coordinator hears of it twice."""
        self._cause = None
        self.note(WORLD, f"topic {topic} is deleted")
        was_calm, self.is_calm = self.is_calm, True
        topic_id = self.facts.topics.topics[topic].topic_id
        rest = {name: shape for name, shape in self.facts.topics.topics.items() if name != topic}
        self.shell.see_topics(self.facts.with_topics(rest, is_new=False))
        for checker in self.checkers:
            checker.on_topic_deleted(topic)
        self.shell.remove_topics({topic: topic_id})
        self.is_calm = was_calm

    # --- the network

    def send(self, sender: str, request: Message, version: int, on_answer: OnAnswer, timeout_ms: int) -> None:
        """Sends a request; `on_answer` is called once. Of two attempts only the second is listened to; a heartbeat that
        says only what is new is not sent twice: clients say everything in their second attempt.
        """
        if self.chance(self.plan.lost):
            self.at(self._until_noticed_ms(), partial(on_answer, None))
            return
        is_repeatable = not isinstance(request, m.ConsumerGroupHeartbeatRequest) or request.rebalance_timeout_ms != -1
        attempts = (_nobody, on_answer) if is_repeatable and self.chance(self.plan.doubled) else (on_answer,)
        for listener in attempts:
            arrival_ms = max(self.now_ms + self.random.randint(1, 30), self._last_arrival_ms.get(sender, 0))
            self._last_arrival_ms[sender] = arrival_ms
            self.at(arrival_ms - self.now_ms, partial(self._ask, sender, request, version, listener))

    def _until_noticed_ms(self) -> int:
        """A connection breaks at once, or nothing comes for the time of a request."""
        return self.random.choice((40, TIMED_OUT_MS))

    def _ask(self, sender: str, request: Message, version: int, on_answer: OnAnswer) -> None:
        if isinstance(request, m.OffsetCommitRequest) and not self._knows_topics(request):
            # The broker refuses what it can't resolve.
            on_answer(None)
            return
        super()._ask(sender, request, version, on_answer)
        self._batch_ends.append(self.shell.log.end_offset)
        for lookup in self.shell.lookups[self._lookup_count :]:
            self.at(self.random.choice((0, 5, 300, 3_000)), partial(self._resolve, lookup))
        self._lookup_count = len(self.shell.lookups)

    def _knows_topics(self, request: m.OffsetCommitRequest) -> bool:
        topics = self.facts.topics.topics
        return all(
            one.name in topics and one.topic_id in (ZERO_UUID, topics[one.name].topic_id) for one in request.topics
        )

    def _resolve(self, lookup: RegexLookup) -> None:
        lookups = self.shell.lookups
        position = next((index for index, one in enumerate(lookups) if one is lookup), None)
        if position is None:
            return  # the coordinator that asked is gone
        # Of several the one that is found out first is answered first.
        oldest = lookups.pop(position)
        lookups.insert(0, oldest)
        self._cause = None
        found = None
        if not self.chance(self.plan.regex_fails):
            found = {regex: self.facts.matching(regex) for regex in sorted(oldest.regexes)}
        self.note(oldest.group_id, "regular expressions match", found)
        self.shell.resolve(found)
        self._lookup_count = len(self.shell.lookups)

    def _deliver(self, call: GroupCall, response: Message, on_answer: OnAnswer) -> None:
        is_lost = on_answer is _nobody or (call.client_id != OPERATOR and self.chance(self.plan.lost))
        for checker in self.checkers:
            if isinstance(checker, ConsumerChecker):
                checker.on_delivery(call, response, is_lost=is_lost)
        if call.client_id == OPERATOR:
            on_answer(response)
        elif is_lost:
            self.at(self._until_noticed_ms(), partial(on_answer, None))
        else:
            self.at(self.random.randint(1, 30), partial(on_answer, response))

    def restart(self, *, in_good_order: bool) -> None:
        self._lookup_count = 0
        super().restart(in_good_order=in_good_order)
        self.facts.note_restart()

    def _end_of_compaction(self) -> int | None:
        return self.random.choice((None, self.random.choice(self._batch_ends[-200:])))
