"""How big a run of share groups is, and how often what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, and probabilities of faults: per message, per member and heartbeat, per append, per second."""

    seed: int
    member_count: int
    assignment_interval_ms: int
    lost: float
    doubled: float
    crash: float
    leave: float
    resubscribe: float
    append_fails: float
    work_fails: float
    restart: float
    topics: float
    tinker: float

    @classmethod
    def of_seed(cls, seed: int) -> Plan:
        random = Random(seed)
        some = random.choice
        return cls(
            seed,
            member_count=random.randint(1, 7),
            assignment_interval_ms=some((0, 1_000, 5_000)),
            lost=some((0.0, 0.02, 0.1)),
            doubled=some((0.0, 0.05)),
            crash=some((0.0, 0.02)),
            leave=some((0.0, 0.02, 0.1)),
            resubscribe=some((0.0, 0.02)),
            append_fails=some((0.0, 0.02, 0.1)),
            work_fails=some((0.0, 0.1)),
            restart=some((0.0, 0.01, 0.03)),
            topics=some((0.0, 0.02)),
            tinker=some((0.05, 0.3)),
        )
