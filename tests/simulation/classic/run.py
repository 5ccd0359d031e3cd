"""Runs a plan to its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.classic.check_coordinator import Purity, Repetition, Restart
from tests.simulation.classic.check_generations import Agreement, Ownership
from tests.simulation.classic.check_members import Departure, Membership, Patience
from tests.simulation.classic.check_offsets import Offsets
from tests.simulation.classic.consumer import Phase
from tests.simulation.classic.plan import GROUPS, SIMPLE_GROUPS, TOPICS, Plan
from tests.simulation.classic.society import Society
from tests.simulation.classic.world import World
from tests.simulation.minimal import smallest
from tests.simulation.observation import Checker, Facts, Violation

from groupkeeper.protocol import messages as m

CALM_MS = 120_000
"""Longer than any timeout: by then a group without faults has found its way."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `violation` is None when all went well."""

    plan: Plan
    steps: int
    violation: Violation | None
    trace: Sequence[str] = ()
    restarts: int = 0
    records: int = 0
    generations: int = 0


class Run:
    """A world with its society and its checkers."""

    def __init__(self, plan: Plan, *, share: float = 0.02) -> None:
        self.plan = plan
        self.share = share
        self.world = World(plan, self._make_checkers)
        for checker in self.world.checkers:
            if isinstance(checker, Restart | Repetition):
                checker.shell = self.world.shell
        self.society = Society(self.world)

    def _make_checkers(self, facts: Facts) -> Sequence[Checker]:
        random = Random(self.plan.seed + 1)
        settings = self.plan.settings()
        self.agreement = Agreement(facts, settings.group_max_size)
        self.offsets = Offsets(facts, settings.offsets_retention_ms)
        return (
            Ownership(facts),
            self.agreement,
            self.offsets,
            Membership(facts),
            Departure(facts),
            Patience(facts, settings.group_initial_rebalance_delay_ms),
            Purity(facts, random, self.share),
            Repetition(facts, random, self.share * 5),
            Restart(facts, random, (*GROUPS, *SIMPLE_GROUPS), self.share),
        )

    def live(self, steps: int) -> None:
        """Raises `Violation`."""
        for _ in range(steps):
            self.world.step()
        self._calm_down()
        self._die_out()

    def _calm_down(self) -> None:
        """Faults end; after a while every group works as it should, with as many clients as it has room for.

        While more clients come than a group has room for, it may never become Stable, in Apache Kafka neither: a member
        that is refused while the others wait is removed without completing the join phase, which then lasts as long as
        the longest rebalance timeout; clients with a shorter one give up their JoinGroup by then, and as new members of
        versions before 4 have no member id yet, what they leave takes a place until its session ends, perhaps as the
        leader. `Patience` limits each phase. So surplus clients try for a while, then give up.
        """
        self.world.is_calm = True
        self.society.settle()
        self._pass_time()
        crowded = [group_id for group_id in self.society.groups if self._clients_of(group_id) > self.plan.max_size]
        for group_id in self.society.groups:
            if group_id not in crowded:
                self._check_works(group_id)
        for group_id in crowded:
            self.society.make_fit(group_id, self.plan.max_size)
        if crowded:
            self._pass_time()
        for group_id in crowded:
            self._check_works(group_id)

    def _pass_time(self) -> None:
        end_ms = self.world.now_ms + CALM_MS
        while self.world.now_ms < end_ms:
            self.world.step()

    def _clients_of(self, group_id: str) -> int:
        return sum(one.character.group_id == group_id for one in self.society.consumers)

    def _check_works(self, group_id: str) -> None:  # GC-08, GC-10, GC-15
        consumers = [one for one in self.society.consumers if one.character.group_id == group_id]
        at_work = [one for one in consumers if one.phase is Phase.WORKING]
        if len(at_work) != len(consumers):
            raise self._stuck(group_id, [f"{one.character.client_id} {one.phase}" for one in consumers])
        owned = sorted(place for one in at_work for place in one.owned)
        wanted = sorted(
            (topic, partition)
            for topic in {topic for one in at_work for topic in one.topics}
            for partition in range(TOPICS[topic])
        )
        described = self.world.ask_now(m.DescribeGroupsRequest([group_id]), 6)
        assert isinstance(described, m.DescribeGroupsResponse)
        state = described.groups[0].group_state
        members = {member.member_id for member in described.groups[0].members}
        if consumers and (not at_work or state != "Stable" or members != {one.member_id for one in at_work}):
            raise self._stuck(group_id, f"{state} with {members}, at work {[one.member_id for one in at_work]}")
        if owned != wanted or len({one.generation for one in at_work}) > 1:
            raise self._stuck(group_id, [(one.member_id, one.generation, one.owned, one.topics) for one in at_work])

    def _stuck(self, group_id: str, what: object) -> Violation:
        return Violation("Liveness", group_id, f"{CALM_MS} ms without faults, and {what}")

    def _die_out(self) -> None:  # GC-13, GC-19, GO-71, GO-74
        """Everybody goes without a word; members, offsets and groups are forgotten in time."""
        world = self.world
        for consumer in self.society.consumers:
            consumer.crash()
        world.advance_to(world.now_ms + CALM_MS)
        self.society.look()
        self._expect_nobody()
        # Offsets that name their own retention, and passes, take a little longer.
        world.advance_to(world.now_ms + self.plan.retention_ms + 500_000)
        self.society.look()
        listed = world.ask_now(m.ListGroupsRequest(), 5)
        assert isinstance(listed, m.ListGroupsResponse)
        if listed.groups or self.offsets.remaining():
            raise Violation("Liveness", "", f"never forgotten: {listed.groups} {self.offsets.remaining()}")

    def _expect_nobody(self) -> None:
        listed = self.world.ask_now(m.ListGroupsRequest(), 5)
        assert isinstance(listed, m.ListGroupsResponse)
        busy = [group for group in listed.groups if group.group_state != "Empty"]
        if busy:
            raise Violation("Liveness", busy[0].group_id, f"all members are gone, and {busy}")


def run(plan: Plan, steps: int, *, share: float = 0.02) -> Outcome:
    """Lives through `steps` events and the calm after them."""
    one = Run(plan, share=share)
    try:
        one.live(steps)
    except Violation as violation:
        return Outcome(plan, steps, violation, one.world.trace_lines(violation.group_id, 80))
    except AssertionError as error:
        unexpected = Violation("Assertion", "", f"{error!r}")
        unexpected.__cause__ = error
        return Outcome(plan, steps, unexpected, one.world.trace_lines("", 80))
    facts = one.world.facts
    records = one.world.shell.log.end_offset
    return Outcome(plan, steps, None, (), facts.restarts, records, sum(one.agreement.latest.values()))


FAULTS = tuple("doubled lost append_fails restart move jump tinker slow resubscribe crash leave".split())


def minimal(outcome: Outcome) -> Outcome:
    """A simpler plan that breaks the same rule."""
    return smallest(outcome, run, FAULTS)
