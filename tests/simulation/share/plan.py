"""How big a run of the share groups' simulations is, and how often what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, TypeVar

P = TypeVar("P", bound="Plan")


def drawn(values: Sequence[float]) -> Any:
    """A field of which a seed draws the value."""
    return field(metadata={"values": values})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed decides."""

    seed: int

    @classmethod
    def of_seed(cls: type[P], seed: int) -> P:
        random = Random(seed)
        return cls(seed, *(random.choice(one.metadata["values"]) for one in fields(cls)[1:]))


@dataclass(frozen=True, slots=True)
class GroupsPlan(Plan):
    """Sizes, and probabilities of faults: per message, per member and heartbeat, per append, per second."""

    member_count: int = drawn(range(1, 8))
    assignment_interval_ms: int = drawn((0, 1_000, 5_000))
    lost: float = drawn((0.0, 0.02, 0.1))
    doubled: float = drawn((0.0, 0.05))
    crash: float = drawn((0.0, 0.02))
    leave: float = drawn((0.0, 0.02, 0.1))
    resubscribe: float = drawn((0.0, 0.02))
    append_fails: float = drawn((0.0, 0.02, 0.1))
    work_fails: float = drawn((0.0, 0.1))
    restart: float = drawn((0.0, 0.01, 0.03))
    topics: float = drawn((0.0, 0.02))
    tinker: float = drawn((0.05, 0.3))
    work_waits: float = drawn((0.0, 0.0, 0.5))


@dataclass(frozen=True, slots=True)
class FetchingPlan(Plan):
    """Sizes, and probabilities of faults: per message, per consumer and round, per append, per second."""

    consumer_count: int = drawn(range(1, 6))
    lock_ms: int = drawn((1_000, 3_000))
    max_deliveries: int = drawn(range(1, 7))
    max_in_flight: int = drawn((10, 30, 100))
    lost: float = drawn((0.0, 0.02, 0.1, 0.5))
    crash: float = drawn((0.0, 0.02, 0.05))
    slow: float = drawn((0.0, 0.05, 0.2))
    append_fails: float = drawn((0.0, 0.05, 0.2))
    restart: float = drawn((0.0, 0.01, 0.05))
    aborted: float = drawn((0.0, 0.0, 0.2))
    compacted: float = drawn((0.0, 0.1))
    deleted: float = drawn((0.0, 0.01))
    release: float = drawn((0.05, 0.3))
    poison: float = drawn((0.0, 0.02))
