"""Runs a plan to its end."""

from collections.abc import Sequence
from random import Random

from tests.simulation.classic.check_coordinator import Purity, Repetition, Restart
from tests.simulation.classic.check_generations import Agreement, Ownership
from tests.simulation.classic.check_members import Departure, Membership, Patience
from tests.simulation.classic.check_offsets import Offsets
from tests.simulation.classic.consumer import Phase
from tests.simulation.classic.plan import GROUPS, SIMPLE_GROUPS, TOPICS, Plan
from tests.simulation.classic.society import Society
from tests.simulation.classic.world import World
from tests.simulation.life import Life, Outcome
from tests.simulation.observation import Checker, Facts, Violation

from groupkeeper.protocol import messages as m

CALM_MS = 120_000
"""Longer than any timeout: by then a group without faults has found its way."""
SHARE = 0.02
"""Of what is asked, for the checkers that ask again."""


class Run(Life):
    """A world with its society and its checkers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
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
            Purity(facts, random, SHARE),
            Repetition(facts, random, SHARE * 5),
            Restart(facts, random, (*GROUPS, *SIMPLE_GROUPS), SHARE),
        )

    def counts(self) -> dict[str, int]:
        return {"generations": sum(self.agreement.latest.values())}

    def calm_down(self) -> None:
        """Faults end; after a while every group works as it should, with as many clients as it has room for.

        While more clients come than a group has room for, it may never become Stable, in Apache Kafka neither: a member
        that is refused while the others wait is removed without completing the join phase, which then lasts as long as
        the longest rebalance timeout; clients with a shorter one give up their JoinGroup by then, and as new members of
        versions before 4 have no member id yet, what they leave takes a place until its session ends, perhaps as the
        leader. `Patience` limits each phase. So surplus clients try for a while, then give up.
        """
        self.world.is_calm = True
        self.society.settle()
        self.pass_time(CALM_MS)
        crowded = [group_id for group_id in self.society.groups if self._clients_of(group_id) > self.plan.max_size]
        for group_id in self.society.groups:
            if group_id not in crowded:
                self._check_works(group_id)
        for group_id in crowded:
            self.society.make_fit(group_id, self.plan.max_size)
        if crowded:
            self.pass_time(CALM_MS)
        for group_id in crowded:
            self._check_works(group_id)

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

    def die_out(self) -> None:  # GC-13, GC-19, GO-71, GO-74
        """Everybody goes without a word; members, offsets and groups are forgotten in time."""
        world = self.world
        for consumer in self.society.consumers:
            consumer.crash()
        world.advance_to(world.now_ms + CALM_MS)
        self.society.look()
        self.expect_nobody()
        # Offsets that name their own retention, and passes, take a little longer.
        world.advance_to(world.now_ms + self.plan.retention_ms + 500_000)
        self.society.look()
        listed = world.ask_now(m.ListGroupsRequest(), 5)
        assert isinstance(listed, m.ListGroupsResponse)
        if listed.groups or self.offsets.remaining():
            raise Violation("Liveness", "", f"never forgotten: {listed.groups} {self.offsets.remaining()}")


def run(plan: Plan, steps: int) -> Outcome:
    return Run(plan).outcome(steps)
