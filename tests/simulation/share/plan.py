"""How big a run of the share groups' simulations is, and how often what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class GroupsPlan:
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
    work_waits: float

    @classmethod
    def of_seed(cls, seed: int) -> GroupsPlan:
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
            work_waits=some((0.0, 0.0, 0.5)),
        )


@dataclass(frozen=True, slots=True)
class FetchingPlan:
    """Sizes, and probabilities of faults: per message, per consumer and round, per append, per second."""

    seed: int
    consumer_count: int
    lock_ms: int
    max_deliveries: int
    max_in_flight: int
    lost: float
    crash: float
    slow: float
    append_fails: float
    restart: float
    aborted: float
    compacted: float
    deleted: float
    release: float
    poison: float

    @classmethod
    def of_seed(cls, seed: int) -> FetchingPlan:
        random = Random(seed)
        some = random.choice
        return cls(
            seed,
            consumer_count=random.randint(1, 5),
            lock_ms=some((1_000, 3_000)),
            max_deliveries=random.randint(1, 6),
            max_in_flight=some((10, 30, 100)),
            lost=some((0.0, 0.02, 0.1, 0.5)),
            crash=some((0.0, 0.02, 0.05)),
            slow=some((0.0, 0.05, 0.2)),
            append_fails=some((0.0, 0.05, 0.2)),
            restart=some((0.0, 0.01, 0.05)),
            aborted=some((0.0, 0.0, 0.2)),
            compacted=some((0.0, 0.1)),
            deleted=some((0.0, 0.01)),
            release=some((0.05, 0.3)),
            poison=some((0.0, 0.02)),
        )
