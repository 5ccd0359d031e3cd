"""A driver of one coordinator without a broker: an in-memory log of bytes, a clock that is told the time, timers.

It does the six steps that `groupkeeper.coordinator.kernel.result` describes, and nothing else. The log holds encoded
records and a restart decodes them, so what does not survive its own encoding shows after a restart.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import Arm, GroupCall, Meter, Parked, Record, RegexLookup, Result, Work
from groupkeeper.coordinator.kernel.settings import Settings, SettingsChange
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.coordinator.kernel.topics_image import TopicsChange, TopicsImage
from groupkeeper.coordinator.share.work import ShareErrors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.offsets_topic import UnknownRecord, decode_record, encode_record
from groupkeeper.protocol.primitives import Message

NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record as bytes; `producer_id` is −1 unless it belongs to a transaction."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction."""

    offset: int
    producer_id: int
    is_commit: bool


class MemoryLog:
    """What a restart finds. Offsets have gaps after compaction, as in Kafka."""

    def __init__(self) -> None:
        self.entries: list[LogRecord | Marker] = []
        self.end_offset = 0

    def append(self, record: Record, producer_id: int = NO_PRODUCER) -> LogRecord:
        key, value = encode_record(record)
        entry = LogRecord(self.end_offset, key, value, producer_id)
        self.entries.append(entry)
        self.end_offset += 1
        return entry

    def append_marker(self, producer_id: int, *, is_commit: bool) -> Marker:
        marker = Marker(self.end_offset, producer_id, is_commit)
        self.entries.append(marker)
        self.end_offset += 1
        return marker

    def compact(
        self, *, to_offset: int | None = None, stop_offset: int | None = None, keep_tombstones: bool = True
    ) -> None:
        """What Kafka's log cleaner does with the records up to an offset, as far as no transaction is open: those of
        aborted transactions go, and those that a later one of their key replaces. Tombstones go too, unless kept.
        Markers stay. It writes the log anew from the beginning; one that is killed has come to `stop_offset`.
        """
        outcomes = self._transaction_outcomes()
        open_offsets = [offset for offset, outcome in outcomes.items() if outcome is None]
        end = min([self.end_offset if to_offset is None else to_offset, *open_offsets])
        last_offset_by_key = {
            entry.key: entry.offset
            for entry in self.entries
            if isinstance(entry, LogRecord) and entry.offset < end and outcomes.get(entry.offset) is not False
        }

        stop = end if stop_offset is None else min(stop_offset, end)

        def stays(entry: LogRecord | Marker) -> bool:
            if isinstance(entry, Marker) or entry.offset >= stop:
                return True
            if last_offset_by_key.get(entry.key) != entry.offset:
                return False
            return keep_tombstones or entry.value is not None

        self.entries = [entry for entry in self.entries if stays(entry)]

    def _transaction_outcomes(self) -> dict[int, bool | None]:
        """By offset of each record within a transaction: whether it was committed; None while it is open."""
        outcomes: dict[int, bool | None] = {}
        for entry in self.entries:
            if isinstance(entry, LogRecord) and entry.producer_id != NO_PRODUCER:
                ends = [
                    marker.is_commit
                    for marker in self.entries
                    if isinstance(marker, Marker)
                    and marker.producer_id == entry.producer_id
                    and marker.offset > entry.offset
                ]
                outcomes[entry.offset] = ends[0] if ends else None
        return outcomes


def replayed(log: MemoryLog, settings: Settings) -> Coordinator:
    """A coordinator as it is after loading the log, before its timers are armed."""
    coordinator = Coordinator(settings)
    for entry in log.entries:
        if isinstance(entry, Marker):
            coordinator.replay_end_transaction(entry.producer_id, is_commit=entry.is_commit)
            continue
        record = decode_record(entry.key, entry.value)
        if not isinstance(record, UnknownRecord):
            coordinator.replay(record, entry.offset, entry.producer_id)
    return coordinator


@dataclass(slots=True)
class Observer:
    """What the shell reports, in the order of the six steps."""

    appended: Callable[[Record], None] = lambda record: None
    answered: Callable[[int, Message], None] = lambda call_id, response: None
    parked: Callable[[int], None] = lambda call_id: None
    expired: Callable[[TimerKey], None] = lambda timer: None


def _appends_work(_: tuple[Record, ...]) -> KafkaError | None:
    return None


@dataclass(slots=True)
class MemoryShell:
    """Drives a coordinator; see the module's text.

    Attributes:
        refuse_append: asked before records are appended; an error means that they are not, and is what clients get.
        around: called with a function that computes a result; a test may look at the coordinator before and after.
        skew_ms: how far the wall clock, which the coordinator is told, is ahead of the one that timers follow.
    """

    settings: Settings = field(default_factory=Settings)
    now_ms: int = 1_700_000_000_000
    skew_ms: int = field(default=0, kw_only=True)
    observer: Observer = field(default_factory=Observer)
    refuse_append: Callable[[tuple[Record, ...]], KafkaError | None] = _appends_work
    around: Callable[[Coordinator, Callable[[], Result]], Result] = lambda coordinator, compute: compute()
    log: MemoryLog = field(default_factory=MemoryLog)
    deadlines: dict[TimerKey, int] = field(default_factory=dict)
    marks: Counter[Meter] = field(default_factory=Counter)
    parked_calls: set[int] = field(default_factory=set)
    make_coordinator: Callable[[MemoryLog, Settings], Coordinator] = replayed
    topics: TopicsImage = field(default_factory=TopicsImage)
    settings_by_group: Mapping[str, Settings] = field(default_factory=dict)
    lookups: list[RegexLookup] = field(default_factory=list)
    share_work: list[Work] = field(default_factory=list)
    coordinator: Coordinator = field(init=False)

    def __post_init__(self) -> None:
        self.load()

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.skew_ms

    def load(self) -> None:
        """Starts over from the log; parked calls are forgotten without an answer."""
        self.deadlines.clear()
        self.parked_calls.clear()
        self.lookups.clear()
        self.share_work.clear()
        self.coordinator = self.make_coordinator(self.log, self.settings)
        self.coordinator.apply(TopicsChange(self.topics))
        self.coordinator.apply(SettingsChange(self.settings_by_group))
        for result in self.coordinator.resume(self.wall_ms):
            self.carry_out(result, None)

    def unload(self) -> None:
        """The coordinator goes in good order: everybody parked is answered."""
        self.carry_out(self.coordinator.unload(), None)

    def call(self, call: GroupCall) -> None:
        self.carry_out(self._compute(lambda: self.coordinator.handle(call, self.wall_ms)), call)

    def remove_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        self.carry_out(self._compute(lambda: self.coordinator.remove_topics(topic_ids)), None)

    def see_topics(self, image: TopicsImage) -> None:
        """The topics of the cluster changed."""
        self.topics = image
        self.coordinator.apply(TopicsChange(image))

    def see_settings(self, settings_by_group: Mapping[str, Settings]) -> None:
        """Groups have settings of their own: these, and no others."""
        self.settings_by_group = settings_by_group
        self.coordinator.apply(SettingsChange(settings_by_group))

    def resolve(self, topics_by_regex: Mapping[str, frozenset[str]] | None) -> None:
        """Answers the oldest lookup of regular expressions."""
        lookup = self.lookups.pop(0)
        compute = partial(self.coordinator.regexes_resolved, lookup.group_id, topics_by_regex, self.wall_ms)
        self.carry_out(self._compute(compute), lookup)

    def begin_share_work(self) -> Work | None:
        """What there is to do of the oldest work; None when it failed before."""
        work = self.share_work[0]

        def compute() -> Result:
            self.share_work[0], before = self.coordinator.share_work_due(work)
            return before

        before = self._compute(compute)
        if self.carry_out(before, work):
            return self.share_work[0]
        del self.share_work[0]
        return None

    def finish_share_work(self, errors: ShareErrors) -> None:
        """The share coordinator did the oldest work, but for what has an error."""
        work = self.share_work.pop(0)
        self.carry_out(self._compute(lambda: self.coordinator.share_work_done(work, errors)), work)

    def next_deadline_ms(self) -> int | None:
        return min(self.deadlines.values(), default=None)

    def advance_to(self, time_ms: int) -> None:
        """Lets timers run out in the order of their deadlines until the clock shows `time_ms`."""
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= time_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            timer = next(timer for timer, due_ms in self.deadlines.items() if due_ms == deadline_ms)
            del self.deadlines[timer]
            self.observer.expired(timer)
            self.carry_out(self._compute(partial(self.coordinator.expire, timer, self.wall_ms)), timer)
        self.now_ms = max(self.now_ms, time_ms)

    def carry_out(self, result: Result, cause: GroupCall | TimerKey | RegexLookup | Work | None) -> bool:
        """The six steps. Returns whether the records could be appended."""
        error = self.refuse_append(result.records) if result.records else None
        if error is not None:
            result = self._compute(lambda: self.coordinator.append_failed(cause, error, self.wall_ms))
            assert not result.records, "what follows a failed append must not need another one"
        producer_id = NO_PRODUCER if result.transaction is None else result.transaction.producer_id
        for record in result.records:
            entry = self.log.append(record, producer_id)
            self.observer.appended(record)
            self.coordinator.replay(record, entry.offset, producer_id)
        for change in result.soft:
            self.coordinator.apply(change)
        for timer in result.timers:
            if isinstance(timer, Arm):
                if timer.keeps_earlier and timer.timer in self.deadlines:
                    continue
                self.deadlines.pop(timer.timer, None)
                self.deadlines[timer.timer] = self.now_ms + timer.after_ms
            else:
                self.deadlines.pop(timer.timer, None)
        for meter, count in result.marks:
            self.marks[meter] += count
        for lookup in result.lookups:
            if isinstance(lookup, RegexLookup):
                self.lookups.append(lookup)
            else:
                self.share_work.append(lookup)
        self._send(result, cause)
        return error is None

    def _compute(self, compute: Callable[[], Result]) -> Result:
        return self.around(self.coordinator, compute)

    def _send(self, result: Result, cause: GroupCall | TimerKey | RegexLookup | Work | None) -> None:
        for released in result.released:
            assert released.call_id in self.parked_calls, f"call {released.call_id} is answered but was not parked"
            self.parked_calls.remove(released.call_id)
            self.observer.answered(released.call_id, released.response)
        if not isinstance(cause, GroupCall):
            assert result.response is None, "an answer that nobody asked for"
            return
        assert result.response is not None, f"no answer to {cause.request}"
        if isinstance(result.response, Parked):
            self.parked_calls.add(cause.call_id)
            self.observer.parked(cause.call_id)
        else:
            self.observer.answered(cause.call_id, result.response)

    def write_transactional(self, record: Record, producer_id: int) -> None:
        """Puts a record of a transaction into the log, as TxnOffsetCommit does."""
        entry = self.log.append(record, producer_id)
        self.observer.appended(record)
        self.coordinator.replay(record, entry.offset, producer_id)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Writes a marker."""
        self.log.append_marker(producer_id, is_commit=is_commit)
        self.coordinator.replay_end_transaction(producer_id, is_commit=is_commit)
