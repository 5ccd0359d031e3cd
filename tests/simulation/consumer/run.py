"""Runs a plan of the consumer protocol to its end."""

from collections.abc import Iterable, Sequence
from random import Random

from tests.memory_shell import Marker
from tests.simulation.classic.check_coordinator import Purity
from tests.simulation.classic.consumer import Phase
from tests.simulation.consumer.check_as_classic import ConsumerOffsets, ConsumerRepetition, ConsumerRestart
from tests.simulation.consumer.check_custody import Commits, Custody
from tests.simulation.consumer.check_epochs import Epochs, Fencing, Removal
from tests.simulation.consumer.facts import ConsumerFacts
from tests.simulation.consumer.mixed_classic import MixedClassic
from tests.simulation.consumer.modern import Modern
from tests.simulation.consumer.plan import ConsumerPlan
from tests.simulation.consumer.society import ConsumerSociety, Person
from tests.simulation.consumer.world import ConsumerWorld
from tests.simulation.life import Life, Outcome
from tests.simulation.observation import Checker, Facts, Violation

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import UnknownRecord, decode_record

CALM_MS = 150_000
"""Longer than any timeouts one after the other: by then a group without faults has found its way."""
LOOK_MS = 5_000
QUIET_MS = 20_000
SHARE = 0.01
"""Of what is asked, for the checkers that ask again."""
UNIMPORTANT = (m.OffsetCommitKey, m.ConsumerGroupRegularExpressionKey)


class Run(Life):
    """A world with its society and its checkers."""

    plan: ConsumerPlan
    world: ConsumerWorld

    def __init__(self, plan: ConsumerPlan) -> None:
        self.plan = plan
        self.world = ConsumerWorld(plan, self._make_checkers)
        self.restart.shell = self.repetition.shell = self.world.shell
        self.world.start()
        self.society = ConsumerSociety(self.world)

    def _make_checkers(self, facts: Facts) -> Sequence[Checker]:
        assert isinstance(facts, ConsumerFacts)
        random = Random(self.plan.seed + 1)
        settings = self.plan.settings()
        custody = Custody(facts)
        self.offsets = ConsumerOffsets(facts, settings.offsets_retention_ms)
        self.restart = ConsumerRestart(facts, random, SHARE)
        self.repetition = ConsumerRepetition(facts, random, SHARE * 3)
        return (
            custody,
            Commits(facts, custody),
            Epochs(facts),
            Fencing(facts),
            Removal(facts, settings, custody),
            self.offsets,
            Purity(facts, random, SHARE),
            self.repetition,
            self.restart,
        )

    def counts(self) -> dict[str, int]:
        return {"upgrades": self.world.facts.upgrades, "downgrades": self.world.facts.downgrades}

    def calm_down(self) -> None:  # GN-09, GN-12 … GN-14, GN-20 … GN-23, GM-04, GM-07
        """Faults end; before long every group works as it should, and nothing is written but commits."""
        world = self.world
        world.is_calm = True
        world.shell.skew_ms = 0
        self.society.settle()
        end_ms = world.now_ms + CALM_MS
        quiet_ms = 0
        while quiet_ms < QUIET_MS:
            if world.now_ms > end_ms:
                raise self._restless()
            end_offset = world.shell.log.end_offset
            self.pass_time(LOOK_MS)
            is_settled = not self._changes(end_offset) and not any(self._troubles())
            quiet_ms = quiet_ms + LOOK_MS if is_settled else 0

    def _restless(self) -> Violation:
        troubles = self._troubles()
        if any(troubles):
            return Violation("Liveness", self._concerned(), f"{CALM_MS} ms without faults, and {troubles}")
        changes = self._changes(self.world.shell.log.end_offset - 5)
        return Violation("Quiet", getattr(changes[0].key, "group_id", ""), f"nothing happens, and {changes}")

    def _changes(self, from_offset: int) -> list[Record]:
        """What was written beside commits, and what regular expressions match now."""
        changes: list[Record] = []
        for entry in reversed(self.world.shell.log.entries):
            if entry.offset < from_offset or isinstance(entry, Marker):
                break
            record = decode_record(entry.key, entry.value)
            if not isinstance(record, UnknownRecord) and not isinstance(record.key, UNIMPORTANT):
                changes.append(record)
        return changes

    def _troubles(self) -> list[str]:
        return [self._trouble(group_id) for group_id in self.society.groups]

    def _concerned(self) -> str:
        return next(group_id for group_id in self.society.groups if self._trouble(group_id))

    def _trouble(self, group_id: str) -> str:
        """What is not as it should be in a group that had the time to settle; empty when nothing is."""
        people = [one for one in self.society.people if one.group_id == group_id]
        at_work = [one for one in people if self._works(one)]
        has_room = self.plan.max_size >= len(people) and self.plan.policy == "bidirectional"
        if len(at_work) < len(people) and (has_room or not at_work):
            return f"at work are only {[self._name(one) for one in at_work]}"
        owned = sorted(place for one in at_work for place in self._owned(one))
        wanted = sorted({place for one in at_work for place in self._wanted(one)})
        if owned != wanted:
            return f"subscribed is {wanted}, owned {[(self._name(one), self._owned(one)) for one in at_work]}"
        for one in at_work:
            if not set(self._owned(one)) <= set(self._wanted(one)):
                return f"{self._name(one)} owns {self._owned(one)}"
        return self._trouble_described(group_id, at_work)

    def _trouble_described(self, group_id: str, at_work: Sequence[Person]) -> str:
        described = self.world.ask_now(m.ConsumerGroupDescribeRequest([group_id]), 1)
        assert isinstance(described, m.ConsumerGroupDescribeResponse)
        group = described.groups[0]
        if group.error_code:
            if any(isinstance(one.client, Modern) for one in at_work):
                return "a classic group with members of the consumer protocol"
            return ""
        if at_work and group.group_state != "Stable":
            return f"it is {group.group_state}"
        if {member.member_id for member in group.members} != {one.client.member_id for one in at_work}:
            return f"members are {[member.member_id for member in group.members]}"
        sizes = [len(self._owned(one)) for one in at_work]
        if self._must_be_even(at_work) and max(sizes) - min(sizes) > 1:
            return f"shares are {sizes}"
        return ""

    def _must_be_even(self, at_work: Sequence[Person]) -> bool:
        """Whether the uniform assignor shares out topics that everybody subscribes to (GN-11, GN-22, GN-24)."""
        return (
            bool(at_work)
            and self.plan.assignor == "uniform"
            and all(isinstance(one.client, Modern) and one.modern.configured.assignor is None for one in at_work)
            and len({(one.modern.subscription.names, self._regex(one.modern)) for one in at_work}) == 1
        )

    def _works(self, person: Person) -> bool:
        client = person.client
        return client.epoch > 0 if isinstance(client, Modern) else client.phase is Phase.WORKING

    def _name(self, person: Person) -> str:
        return person.client.member_id

    def _owned(self, person: Person) -> list[tuple[str, int]]:
        client = person.client
        if isinstance(client, MixedClassic):
            return sorted(client.owned)
        names = self.world.facts.topics.name_by_id
        return sorted((names.get(topic_id, "a deleted topic"), one) for topic_id, one in client.owned)

    def _wanted(self, person: Person) -> list[tuple[str, int]]:
        client, topics = person.client, self.world.facts.topics.topics
        names: Iterable[str]
        if isinstance(client, MixedClassic):
            names = client.topics
        else:
            regex = self._regex(client)
            matched = self.world.facts.matching(regex) if regex else frozenset[str]()
            names = {*client.subscription.names, *matched}
        wanted = {(name, one) for name in names if name in topics for one in range(topics[name].partition_count)}
        inherited = self.world.facts.inherited.get(person.group_id, {}).get(client.member_id, ())
        return [*wanted.union(one for one in inherited if one[0] in topics)]

    def _regex(self, client: Modern) -> str:
        """Version 0 has no place for an expression."""
        return client.subscription.regex or "" if client.configured.version else ""

    def die_out(self) -> None:  # GN-15
        """Everybody goes without a word, and is forgotten in time."""
        world = self.world
        for person in self.society.people:
            person.client.crash()
        world.advance_to(world.now_ms + CALM_MS)
        self.society.look()
        self.expect_nobody()


def run(plan: ConsumerPlan, steps: int) -> Outcome:
    return Run(plan).outcome(steps)
