"""The records of a share-partition that are in flight: batches, split into runs of records only where states differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

NO_MEMBER: Final = ""


class RecordState(IntEnum):
    """The delivery state of a record, numbered as the share coordinator stores it."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Given up, but not yet written to the group's dead-letter queue."""
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record needs no further delivery."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AcknowledgeType(IntEnum):
    """How a consumer acknowledges a record that it acquired. GAP: there is no such record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class DeliveryLimit(NamedTuple):
    """How often a group's records are delivered, and their state when they are given up: ARCHIVED, or ARCHIVING if they
    go to a dead-letter queue.
    """

    max_count: int
    last_state: RecordState = RecordState.ARCHIVED


class Before(NamedTuple):
    """The fields to which a run returns when a change of its state cannot be stored."""

    state: RecordState
    member_id: str


@dataclass(slots=True)
class RecordRun:
    """Adjacent records, first to last offset inclusive, with equal fields."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    """How often they were acquired."""
    member_id: str = NO_MEMBER
    """The member that acquired them; empty: none."""
    deadline_ms: int = 0
    """When the lock of acquired records ends."""
    before: Before | None = None
    """None: no change of state waits to be stored. While one waits, no other change of the run is allowed."""
    is_rejected: bool = False
    """Whether a member rejected the records; has a meaning only for ARCHIVING ones."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def can_be_acquired(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.before is None

    @property
    def is_done(self) -> bool:
        """Whether the records are done, and this is stored."""
        return self.state.is_terminal and self.before is None

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def release(self, limit: DeliveryLimit) -> None:
        """Releases the records, or gives them up after the maximum number of deliveries."""
        used_up = self.delivery_count >= limit.max_count
        self.state = limit.last_state if used_up else RecordState.AVAILABLE
        self.member_id = NO_MEMBER
        self.is_rejected = False


@dataclass(slots=True)
class InFlightBatch:
    """Records that were acquired together the first time.

    Attributes:
        runs: in order, without holes.
        is_split: whether the records ever had different states; they are acquired one run at a time from then on.
        first_size: the initial number of records: records at the start are removed once they are done.
    """

    runs: list[RecordRun]
    is_split: bool = field(default=False, init=False)
    first_size: int = field(init=False)

    def __post_init__(self) -> None:
        self.first_size = self.size

    @property
    def first(self) -> int:
        return self.runs[0].first

    @property
    def last(self) -> int:
        return self.runs[-1].last

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def overlapping(self, first: int, last: int) -> Iterator[RecordRun]:
        """The runs that have a record in a range."""
        return (run for run in self.runs if run.first <= last and run.last >= first)

    def split(self, first: int, last: int) -> list[RecordRun]:
        """The runs of the batch within a range; runs that cross its ends are cut in two."""
        if first > self.first or last < self.last:
            self.is_split = True
        self._cut(first)
        self._cut(last + 1)
        return [run for run in self.runs if run.first >= first and run.last <= last]

    def _cut(self, offset: int) -> None:
        for index, run in enumerate(self.runs):
            if run.first < offset <= run.last:
                left = replace(run, last=offset - 1)
                assert run.before is None, "a run with a change that is not stored yet is never cut"
                run.first = offset
                self.runs.insert(index, left)
                return

    def drop_before(self, offset: int) -> None:
        """Removes the records before an offset, which is within the batch."""
        self.runs = [run for run in self.runs if run.last >= offset]
        self.runs[0].first = max(self.runs[0].first, offset)
