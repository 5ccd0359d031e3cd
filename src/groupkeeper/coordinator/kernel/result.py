"""The input and output of the coordinator: `GroupCall` in, `Result` out.

A handler computes and changes nothing. The coordinator's driver (broker, simulator, test) does the same six steps with
every result, in this order, without running another operation of the same coordinator in between:

1. Append `records` to the log, all or none (but see `is_atomic`), as part of `transaction` if there is one. If that
   fails, pass the cause and the error to `Coordinator.append_failed`, and continue at step 3 with the result that it
   returns (which has no records).
2. `Coordinator.replay` each record, in order, with the transaction's producer id.
3. `Coordinator.apply` each value of `soft`, in order.
4. Arm and disarm `timers`, in order.
5. Count `marks`.
6. Send `response` (unless it is PARKED) and the `released` responses.

Without failures, and with a log in memory (`tests/memory_shell.py` has it all):

    result = coordinator.handle(call, now_ms)
    for record in result.records:
        coordinator.replay(record, log.append(record), producer_id)
    for change in result.soft:
        coordinator.apply(change)
    arm(result.timers), count(result.marks), send(result.response, result.released)

Nothing is sent before step 1 has succeeded, nor before all in-sync replicas have the `records`; `response` waits for
earlier records, too, unless it is `Immediate`. The driver does the `lookups` afterwards, asynchronously; their
outcome is another operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from groupkeeper.coordinator.kernel.soft import SoftChange
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol.offsets_topic import Entry, Tombstone
from groupkeeper.protocol.primitives import Message

Record: TypeAlias = Entry | Tombstone
"""One record of `__consumer_offsets`."""


class ProducerEpoch(NamedTuple):
    """A producer id with an epoch."""

    producer_id: int
    producer_epoch: int


class Meter(Enum):
    """The sensors of Kafka's coordinator; values are the shipped attribute prefixes."""

    __hash__ = object.__hash__  # Enum's is slower, and each commit needs this hash

    OFFSET_COMMIT = "offset-commit"
    OFFSET_EXPIRATION = "offset-expiration"
    OFFSET_DELETION = "offset-deletion"
    GROUP_COMPLETED_REBALANCE = "group-completed-rebalance"
    CONSUMER_GROUP_REBALANCE = "consumer-group-rebalance"
    SHARE_GROUP_REBALANCE = "share-group-rebalance"
    STREAMS_GROUP_REBALANCE = "streams-group-rebalance"


@dataclass(slots=True, init=False)
class GroupCall:
    """A request with the context that the coordinator cannot know by itself."""

    call_id: int
    """Unique among the calls of one coordinator; names the caller when the response is parked."""
    request: Message
    version: int
    client_id: str = ""
    client_host: str = ""
    fresh_id: str = ""
    """Random and unique text from which a new member id may be made; only requests to join use it."""
    regex_error: str | None = None
    """The parser's error for the request's regular expression; None when it is valid."""

    def __init__(  # mypyc does not compile a dataclass's own
        self,
        call_id: int,
        request: Message,
        version: int,
        client_id: str = "",
        client_host: str = "",
        fresh_id: str = "",
        regex_error: str | None = None,
    ) -> None:
        self.call_id = call_id
        self.request = request
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.fresh_id = fresh_id
        self.regex_error = regex_error


@dataclass(slots=True, init=False)
class Arm:
    """Let `timer` expire `after_ms` from now. Replaces its earlier deadline, unless `keeps_earlier`."""

    timer: TimerKey
    after_ms: int
    keeps_earlier: bool = False

    def __init__(self, timer: TimerKey, after_ms: int, keeps_earlier: bool = False) -> None:
        self.timer = timer
        self.after_ms = after_ms
        self.keeps_earlier = keeps_earlier


class Disarm(NamedTuple):
    """Remove `timer`; nothing happens when it is not armed."""

    timer: TimerKey


class Parked(Enum):
    """The type of PARKED: the response comes in the `released` of a later result, under the call's `call_id`."""

    PARKED = "parked"


PARKED = Parked.PARKED


class Released(NamedTuple):
    """The response to a parked call. If the caller is gone, the response is dropped."""

    call_id: int
    response: Message


@dataclass(frozen=True, slots=True)
class RegexLookup:
    """Find the topics that regular expressions match, and pass them to `Coordinator.regexes_resolved`.

    Only topics that the caller of `call_id` may describe are matched.
    """

    group_id: str
    regexes: frozenset[str]
    call_id: int


@mypyc_attr(allow_interpreted_subclasses=True)
class Work:
    """Work that the driver requests from another coordinator; `call` is the request that waits for it, None: no request
    waits.
    """

    __slots__ = ()

    @property
    def call(self) -> GroupCall | None:
        raise NotImplementedError


@dataclass(slots=True, init=False)
class Result:
    """The outcome of one operation; the module's docstring describes how to carry it out."""

    response: Message | Parked | None = None
    """None when no caller waits: after a timer, a load, or a deleted topic."""
    records: tuple[Record, ...] = ()
    is_atomic: bool = True
    """False when the records are independent, and may be appended in several batches."""
    transaction: ProducerEpoch | None = None
    """The producer of the transaction that the records belong to; None outside transactions."""
    soft: tuple[SoftChange, ...] = ()
    released: tuple[Released, ...] = ()
    timers: tuple[Arm | Disarm, ...] = ()
    marks: tuple[tuple[Meter, int], ...] = ()
    lookups: tuple[RegexLookup | Work, ...] = ()

    def __init__(
        self,
        response: Message | Parked | None = None,
        records: tuple[Record, ...] = (),
        is_atomic: bool = True,
        transaction: ProducerEpoch | None = None,
        soft: tuple[SoftChange, ...] = (),
        released: tuple[Released, ...] = (),
        timers: tuple[Arm | Disarm, ...] = (),
        marks: tuple[tuple[Meter, int], ...] = (),
        lookups: tuple[RegexLookup | Work, ...] = (),
    ) -> None:
        self.response = response
        self.records = records
        self.is_atomic = is_atomic
        self.transaction = transaction
        self.soft = soft
        self.released = released
        self.timers = timers
        self.marks = marks
        self.lookups = lookups


class Immediate(Result):
    """A result whose response waits for no replica: the request was refused, or only read the state."""

    __slots__ = ()
