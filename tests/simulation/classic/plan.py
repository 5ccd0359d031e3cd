"""What a simulation consists of; everything in it follows from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from groupkeeper.coordinator.kernel.settings import Settings

TOPICS = {"t1": 4, "t2": 3, "t3": 1}
"""Topics and their numbers of partitions."""

# Ids that text keys would mix up: group "g" with member "a-1", group "g-a" with member "1".
GROUPS = ("g", "g-a", "orders")
SIMPLE_GROUPS = ("simple", "")


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, and probabilities of faults. A fault with probability 0 does not happen; `minimal` tries that one by one.

    Attributes:
        lost, doubled: per message.
        crash, leave, resubscribe, slow: per client and heartbeat.
        append_fails: per append.
        restart, move, jump: per tick of the world, which is every second or so.
        tinker: per operator's round; deletions of offsets, groups and members, and commits on members' behalf.
    """

    seed: int
    group_count: int = 2
    client_count: int = 6
    lost: float = 0.01
    doubled: float = 0.02
    crash: float = 0.004
    leave: float = 0.006
    resubscribe: float = 0.01
    slow: float = 0.02
    append_fails: float = 0.02
    restart: float = 0.01
    move: float = 0.004
    jump: float = 0.003
    tinker: float = 0.15
    max_size: int = 1_000
    retention_ms: int = 200_000

    @classmethod
    def of_seed(cls, seed: int) -> Plan:
        """A plan whose sizes and faults vary with the seed."""
        random = Random(seed)
        harshness = random.choice((0.3, 1.0, 1.0, 3.0))
        return cls(
            seed=seed,
            group_count=random.randint(1, len(GROUPS)),
            client_count=random.randint(2, 9),
            lost=0.01 * harshness,
            doubled=random.choice((0.0, 0.02, 0.1)),
            crash=0.004 * harshness,
            leave=0.006 * harshness,
            resubscribe=random.choice((0.0, 0.01, 0.05)),
            slow=0.01 * harshness,
            append_fails=random.choice((0.0, 0.02, 0.1)),
            restart=random.choice((0.0, 0.005, 0.02)),
            move=random.choice((0.0, 0.005)),
            jump=random.choice((0.0, 0.003)),
            tinker=random.choice((0.05, 0.2)),
            max_size=random.choice((1_000, 1_000, 3)),
            retention_ms=random.choice((60_000, 200_000, 100_000_000)),
        )

    def settings(self) -> Settings:
        return Settings(
            group_max_size=self.max_size,
            offsets_retention_ms=self.retention_ms,
            offsets_retention_check_interval_ms=min(self.retention_ms // 4, 100_000),
        )
