"""What the simulations of share groups stand on: events in the order of their time, and the share coordinator."""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NoReturn, Protocol

from tests.simulation.observation import Violation

from groupkeeper.coordinator.share_state.coordinator import (
    ShareStateCoordinator,
    ShareStateResult,
    ShareStateSettings,
    ShareStateWrite,
)
from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState
from groupkeeper.protocol.errors import CoordinatorNotAvailable
from groupkeeper.protocol.share_state_topic import decode_share_state, encode_share_state

START_MS = 1_700_000_000_000
TRACE_LENGTH = 400


class Events:
    """A clock and what is going to happen; everything follows from the seed.

    Attributes:
        is_calm: no faults any more.
        trace: what happened lately.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = START_MS
        self.is_calm = False
        self.trace: deque[str] = deque(maxlen=TRACE_LENGTH)
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, action))

    def step(self, upon: Callable[[int], None] = lambda now_ms: None) -> None:
        """The next event; `upon` hears of the time first."""
        due_ms, _, action = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, due_ms)
        upon(self.now_ms)
        action()

    def chance(self, probability: float) -> bool:
        """Whether a fault happens; it never does in calm times."""
        return not self.is_calm and self.random.random() < probability

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now_ms - START_MS:>9} {text}")

    def fail(self, checker: str, text: str) -> NoReturn:
        raise Violation(checker, "g", text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `violation` is None when all went well. `seen` counts what consumers were told."""

    violation: Violation | None
    trace: tuple[str, ...] = ()
    seen: int = 0
    restarts: int = 0


class Living(Protocol):
    """A simulated world."""

    events: Events
    seen: int
    restarts: int

    def live(self, steps: int) -> None:
        """Lives through so many events and the calm after them. Raises `Violation`."""


def outcome_of(world: Living, steps: int) -> Outcome:
    """One run to its end."""
    try:
        world.live(steps)
    except Violation as violation:
        return Outcome(violation, tuple(world.events.trace))
    except AssertionError as error:
        unexpected = Violation("Assertion", "g", f"{error!r}")
        unexpected.__cause__ = error
        return Outcome(unexpected, tuple(world.events.trace))
    return Outcome(None, (), world.seen, world.restarts)


class MemoryShareState:
    """A share coordinator with its log of bytes: a restart decodes it."""

    def __init__(self, events: Events, partition_count: Callable[[bytes], int], append_fails: float) -> None:
        self.log: list[tuple[int, bytes, bytes | None]] = []
        self._events = events
        self._partition_count = partition_count
        self._append_fails = append_fails
        self._end_offset = 0
        self._settings = ShareStateSettings(events.random.choice((0, 3, 500)), 20_000)
        self.coordinator = ShareStateCoordinator(self._settings)

    def restart(self) -> None:
        """Only what is in the log is left."""
        before = dict(self.coordinator.states)
        self.coordinator = ShareStateCoordinator(self._settings)
        for offset, key, value in self.log:
            record = decode_share_state(key, value)
            assert record is not None
            self.coordinator.replay(record, offset)
        if {key: _of_interest(state) for key, state in before.items()} != {
            key: _of_interest(state) for key, state in self.coordinator.states.items()
        }:
            self._events.fail("Restart", f"share state was {before}, and is {self.coordinator.states}")

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        count = self._partition_count(key.topic_id)
        self._settle(self.coordinator.initialize(key, state_epoch, start_offset, count, self._events.now_ms))

    def write(self, key: SharePartitionKey, written: ShareStateWrite) -> None:
        count = self._partition_count(key.topic_id)
        self._settle(self.coordinator.write(key, written, count, self._events.now_ms))

    def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        count = self._partition_count(key.topic_id)
        result = self.coordinator.read(key, leader_epoch, count, self._events.now_ms)
        self._settle(result)
        assert result.state is not None
        return result.state

    def delete(self, key: SharePartitionKey) -> None:
        self._settle(self.coordinator.delete(key, self._partition_count(key.topic_id)))

    def remove_topic(self, topic_id: bytes) -> None:
        self._settle(self.coordinator.remove_topics({topic_id}), may_fail=False)

    def tidy(self) -> None:
        """Snapshots of what rests, then the log without what they made redundant."""
        self._settle(self.coordinator.snapshot_cold(self._events.now_ms), may_fail=False)
        needed = self.coordinator.redundant_offset
        self.log = [entry for entry in self.log if entry[0] >= needed]

    def _settle(self, result: ShareStateResult, *, may_fail: bool = True) -> None:
        if result.records and may_fail and self._events.chance(self._append_fails):
            raise CoordinatorNotAvailable
        for record in result.records:
            self.log.append((self._end_offset, *encode_share_state(record)))
            self.coordinator.replay(record, self._end_offset)
            self._end_offset += 1


def _of_interest(state: ShareState) -> tuple[object, ...]:
    return state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count, state.batches
