"""What a simulation of the consumer protocol consists of; everything in it follows from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.simulation.classic.plan import Plan

from groupkeeper.coordinator.kernel.settings import Settings

FIRST_TOPICS = {"t1": 4, "t2": 3, "t3": 1}
"""Topics that are there from the beginning, and their numbers of partitions."""
REGEXES = ("t.*", "t[12]", "u.*", "(t1|u1)")
NAMES = (("t1",), ("t1", "t2"), ("t2",), ("t1", "t2", "t3"), ("t3",), ("t1", "u1"), ("u1", "u2"), ())
POLICIES = ("bidirectional",) * 6 + ("upgrade", "downgrade", "disabled")


@dataclass(frozen=True, slots=True)
class ConsumerPlan(Plan):
    """Sizes, and probabilities of faults.

    Attributes:
        classic: the share of clients that speak the classic protocol.
        static: the share of clients with an instance id.
        regex: the share of subscriptions by regular expression.
        swap: per client and heartbeat: it comes back with the other protocol.
        reshape: per operator's round: a topic is made or deleted, or gets partitions.
        regex_fails: per lookup.
        skew: per operator's round: the wall clock is set to another time.
        policy: which groups may migrate.
        interval_ms: the least time between two assignments.
    """

    classic: float = 0.3
    static: float = 0.3
    regex: float = 0.2
    swap: float = 0.01
    reshape: float = 0.05
    regex_fails: float = 0.05
    skew: float = 0.0
    policy: str = "bidirectional"
    assignor: str = "uniform"
    interval_ms: int = 1_000

    @classmethod
    def of_seed(cls, seed: int) -> ConsumerPlan:
        """A plan whose sizes and faults vary with the seed."""
        random = Random(seed)
        harshness = random.choice((0.3, 1.0, 1.0, 3.0))
        skew = random.choice((0.0, 0.0, 0.03))
        return cls(
            seed=seed,
            group_count=random.choice((1, 1, 2)),
            client_count=random.randint(2, 8),
            lost=0.02 * harshness,
            doubled=random.choice((0.0, 0.02, 0.1)),
            crash=0.01 * harshness,
            leave=0.015 * harshness,
            resubscribe=random.choice((0.0, 0.02, 0.08)),
            slow=random.choice((0.0, 0.1, 0.3)),
            append_fails=random.choice((0.0, 0.02, 0.1)),
            restart=random.choice((0.0, 0.01, 0.04)),
            move=random.choice((0.0, 0.01)),
            jump=random.choice((0.0, 0.004)),
            tinker=random.choice((0.05, 0.2)),
            max_size=random.choice((1_000, 1_000, 1_000, 3)),
            retention_ms=100_000_000 if skew else random.choice((30_000, 100_000, 100_000_000)),
            classic=random.choice((0.0, 0.3, 0.3, 0.7)),
            static=random.choice((0.0, 0.3, 0.6)),
            regex=random.choice((0.0, 0.3)),
            swap=random.choice((0.0, 0.02)),
            reshape=random.choice((0.0, 0.05, 0.2)),
            regex_fails=random.choice((0.0, 0.1)),
            skew=skew,
            policy=random.choice(POLICIES),
            assignor=random.choice(("uniform", "uniform", "range")),
            interval_ms=random.choice((0, 1_000, 1_000)),
        )

    def settings(self) -> Settings:
        others = [one for one in ("uniform", "range") if one != self.assignor]
        return Settings(
            group_consumer_max_size=self.max_size,
            group_consumer_session_timeout_ms=20_000,
            group_consumer_heartbeat_interval_ms=4_000,
            group_consumer_assignment_interval_ms=self.interval_ms,
            group_consumer_migration_policy=self.policy,
            group_consumer_assignors=(self.assignor, *others),
            offsets_retention_ms=self.retention_ms,
            offsets_retention_check_interval_ms=min(self.retention_ms // 4, 50_000),
        )
