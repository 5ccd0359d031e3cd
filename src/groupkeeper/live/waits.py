"""How long records have waited: by their own times, which are read once, else by the log ends of earlier looks."""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, FirstRecord, OffsetSpec, Position, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.live.errand import Errand
from groupkeeper.live.model import NOTHING_WAITS, Wait, WaitSum
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.operations.problems import Attempt
from groupkeeper.operations.topics import RETENTION_SETTINGS, retention_ms
from groupkeeper.operations.transactions import OpenTransaction, open_in
from groupkeeper.protocol.errors import KafkaError, TopicAuthorizationFailed
from groupkeeper.rules.progress import retention_margin_ms, time_lag_ms

_MOST_POINTS = 24
"""The most log ends kept for a partition: older ones are thinned out, but for the first."""

_MOST_ASKED = 50
_ASK_AGAIN_MS = 60_000


class Holders:
    """The open transactions of a cluster that hold back consumers of committed records, if brokers tell. Brokers are
    asked only about partitions where a group is held back.
    """

    def __init__(self) -> None:
        self._asked: dict[TopicPartition, tuple[int, int]] = {}
        """By partition, the last stable offset and the time of the last request."""
        self._found: dict[TopicPartition, OpenTransaction] = {}

    async def ask(self, admin: Admin, held: Mapping[TopicPartition, int], at_ms: int) -> None:
        """Asks about partitions. `held`: their last stable offsets; answers about other partitions are forgotten."""
        self._asked = {tp: asked for tp, asked in self._asked.items() if held.get(tp) == asked[0]}
        self._found = {tp: one for tp, one in self._found.items() if tp in self._asked}
        due = [each for each in held if at_ms - self._asked.get(each, (0, 0))[1] >= _ASK_AGAIN_MS][:_MOST_ASKED]
        self._asked |= {tp: (held[tp], at_ms) for tp in due}
        found = await open_in(admin, due)
        self._found = {tp: one for tp, one in self._found.items() if tp not in due}
        self._found |= {one.tp: one for one in reversed(found.transactions)}

    def of(self, tp: TopicPartition) -> OpenTransaction | None:
        """The oldest open transaction in a partition; None: unknown, or no reader waits for one."""
        return self._found.get(tp)


class EndsSeen:
    """The ends of logs with their times. Memory is bounded by the number of partitions."""

    def __init__(self) -> None:
        self._points: dict[TopicPartition, tuple[array[int], array[int]]] = {}

    def note(self, tp: TopicPartition, end: int, at_ms: int, *, is_new: bool = False) -> bool:
        """Notes the log's end at a time. `is_new`: the topic was created again. A log that has become shorter counts
        as new, too; returns whether the log is new.
        """
        ends, times = self._points.setdefault(tp, (array("q"), array("q")))
        is_new = is_new or (bool(ends) and end < ends[-1])
        if is_new or (ends and at_ms < times[-1]):
            del ends[:], times[:]
        if len(ends) > 1 and ends[-2] == end:  # a log at rest: only how long matters
            times[-1] = at_ms
            return is_new
        ends.append(end)
        times.append(at_ms)
        if len(ends) > _MOST_POINTS:
            del ends[1 : _MOST_POINTS // 2 : 2], times[1 : _MOST_POINTS // 2 : 2]
        return is_new

    def written_ms(self, tp: TopicPartition, offset: int) -> int | None:
        """The estimated time at which a record was written, in ms; None: before the first look, or not yet."""
        ends, times = self._points.get(tp, (array("q"), array("q")))
        after = bisect_right(ends, offset)
        if not 0 < after < len(ends):
            return None
        first, last = ends[after - 1], ends[after]
        return times[after - 1] + (times[after] - times[after - 1]) * (offset - first) // (last - first)

    def seen_ms(self, tp: TopicPartition, offset: int) -> int | None:
        """The time of the first look after the record was written, by the log's end; None: none was."""
        ends, times = self._points.get(tp, (array("q"), array("q")))
        after = bisect_right(ends, offset)
        return times[after] if after < len(ends) else None

    def keep(self, tps: Collection[TopicPartition]) -> None:
        """Removes all other partitions."""
        if len(self._points) > len(tps):
            self._points = {tp: points for tp, points in self._points.items() if tp in tps}


_READ_TOGETHER = 200
_TRY_AGAIN_MS = 300_000
"""The interval between attempts to read refused topics, and between requests for settings."""

SHORT_MS = 60_000
"""Below this wait a group is ok without a check whether its next record was aborted, unless a limit is shorter."""

_AHEAD_MS = 60_000
"""A timestamp that is further ahead of this machine's clock does not say when the record was written."""

_UNKNOWN = Wait(None, is_margin_known=False, is_waiting=False)
_NO_COMMIT = Wait(None, is_waiting=False)

Rows = Mapping[str, Sequence[PartitionLag]]


class Waits:
    """The state about one cluster's records between polls; its size is bounded by the number of partitions."""

    def __init__(self, *, reads_records: bool = True, short_ms: int = SHORT_MS) -> None:
        """`reads_records` False: records are never read, and times are always interpolated."""
        self._reads_records = reads_records
        self.short_ms = short_ms
        self._ends = EndsSeen()
        self._records: dict[Position, FirstRecord] = {}
        self._readable: dict[Position, FirstRecord] = {}
        """The next committed record, if the record of `_records` is in a transaction."""
        self._clear_to: dict[Position, int] = {}
        """By position, the offset up to which there is nothing to read: markers, aborted records, gaps."""
        self._open: dict[Position, FirstRecord] = {}
        """The first record of an open transaction at that offset."""
        self._held_at: dict[Position, int] = {}
        """The last stable offset, if an open transaction begins at or before the next record."""
        self._holders = Holders()
        self._read_ms: dict[TopicPartition, int] = {}
        self._refused: dict[str, tuple[int, Failure]] = {}  # by topic: since when
        self._topic_ids: Mapping[str, bytes] = {}
        self._retention = _Retention()
        self._reading: Errand[None] = Errand()
        self._at_ms = 0

    async def look(
        self, admin: Admin, rows_by_group: Rows, at_ms: int, topic_ids: Mapping[str, bytes] = {}, *, within_s: float
    ) -> None:
        """Reads the records and settings for the waits at an instant. Waits for at most `within_s`; a later look has
        the rest. `topic_ids`: the state of a topic with a new id is dropped.
        """
        again = {topic for topic, its in topic_ids.items() if self._topic_ids.get(topic, its) != its}
        self._topic_ids = topic_ids
        self._retention.forget(again)
        wanted: dict[Position, int] = {}
        """Positions to look up, with the log's end."""
        uncommitted: set[Position] = set()
        """The positions of partitions without a commit."""
        tps: set[TopicPartition] = set()
        new: set[TopicPartition] = set()
        for row in chain.from_iterable(rows_by_group.values()):
            if row.log_end_offset is not None:
                tp = row.tp
                if tp not in tps:
                    tps.add(tp)
                    if self._ends.note(tp, row.log_end_offset, at_ms, is_new=row.topic in again):
                        new.add(tp)
                position = next_position(row)
                if position is not None:
                    wanted[position] = row.log_end_offset
                    if row.committed is None:
                        uncommitted.add(position)
        self._ends.keep(tps)
        for known in (self._records, self._readable, self._clear_to, self._open, self._held_at):
            for position in [each for each in known if each not in wanted or each.topic_partition in new]:
                del known[position]
        self._read_ms = {tp: ms for tp, ms in self._read_ms.items() if tp in tps}
        topics = {position.topic for position in wanted}
        self._refused = {
            topic: refusal
            for topic, refusal in self._refused.items()
            if topic in topics and not _is_due(refusal[0], at_ms)
        }
        if new:  # current reads may be of the earlier logs
            await self._reading.end()
        self._at_ms = at_ms
        await self._reading.result(lambda: self._look_up(admin, wanted, uncommitted, at_ms), within_s)

    async def end(self) -> None:
        """Stops reading for the last look."""
        await self._reading.end()

    async def _look_up(
        self, admin: Admin, wanted: Mapping[Position, int], uncommitted: Set[Position], at_ms: int
    ) -> None:
        """Reads settings and records. Ends soon after the next poll has begun, which uses the results so far."""
        with contextlib.suppress(ClientError, KafkaError):
            await self._retention.ask(admin, {position.topic for position in wanted}, at_ms)
        with contextlib.suppress(ClientError, KafkaError):
            if self._reads_records:
                await self._read(admin, wanted, at_ms)
                await self._read_committed(admin, wanted, uncommitted, at_ms)
                held = {position.topic_partition: offset for position, offset in self._held_at.items()}
                await self._holders.ask(admin, held, at_ms)

    async def _read(self, admin: Admin, wanted: Mapping[Position, int], at_ms: int) -> None:
        missing = [
            each
            for each, end in wanted.items()
            if each not in self._records and each.topic not in self._refused and not self._is_clear(each, end)
        ]
        missing.sort(key=lambda each: self._read_ms.get(each.topic_partition, 0))
        for start in range(0, len(missing), _READ_TOGETHER):
            if self._at_ms != at_ms:
                return
            begins = {each: self._begin(each) for each in missing[start : start + _READ_TOGETHER]}
            read = await admin.first_records(begins.values())
            for position, begin in begins.items():
                if begin not in read.done:
                    continue
                self._read_ms[position.topic_partition] = at_ms
                if (record := read.done[begin]) is None:
                    self._clear_to[position] = wanted[position]
                else:
                    self._records[position] = record
            for position, failure in read.failed.items():
                if isinstance(failure, TopicAuthorizationFailed):
                    self._refused[position.topic] = (at_ms, failure)

    async def _read_committed(
        self, admin: Admin, wanted: Mapping[Position, int], uncommitted: Set[Position], at_ms: int
    ) -> None:
        """Finds the next committed record for positions whose next record is in a transaction. Each poll goes on where
        the one before ended.
        """
        ends: dict[Position, int] = {}
        for position, end in wanted.items():
            record = self._records.get(position)
            if record is None or not record.is_transactional or position in self._readable:
                continue
            is_fresh = position not in uncommitted and abs(at_ms - record.timestamp) < self.short_ms
            if not is_fresh and not self._is_clear(position, end):
                ends[position] = end
        positions = list(ends)
        for start in range(0, len(positions), _READ_TOGETHER):
            if self._at_ms != at_ms:
                return
            await self._read_up_to(
                {position: ends[position] for position in positions[start : start + _READ_TOGETHER]}, admin
            )

    async def _read_up_to(self, ends: Mapping[Position, int], admin: Admin) -> None:
        latest = {position.topic_partition: OffsetSpec.latest() for position in ends}
        # First up to the end of ended transactions, then the record after it.
        stable = (await admin.list_offsets(latest, read_committed=True)).done
        stops = {
            at: min(end, stable[at.topic_partition].offset) for at, end in ends.items() if at.topic_partition in stable
        }
        begins = {at: self._begin(at) for at in stops}
        wanted = {begins[at]: stop for at, stop in stops.items() if begins[at].offset < stop}
        read = (await admin.first_records(wanted, read_committed=True)).done
        for at, stop in stops.items():
            record = read.get(begins[at])
            if record is not None:
                self._readable[at] = record
            elif begins[at] in read:
                self._clear_to[at] = stop
        still = {
            at: at._replace(offset=stop) for at, stop in stops.items() if self._clear_to.get(at) == stop < ends[at]
        }
        first = (await admin.first_records(list(still.values()))).done if still else {}
        for at in stops:
            self._open.pop(at, None)
            self._held_at.pop(at, None)
            if at in still and (record := first.get(still[at])) is not None:
                self._open[at] = record
            if stops[at] < ends[at] and (at in self._open or stops[at] <= self._records[at].offset):
                self._held_at[at] = stops[at]

    def _begin(self, position: Position) -> Position:
        """The position at which to go on reading."""
        return position._replace(offset=max(position.offset, self._clear_to.get(position, position.offset)))

    def _is_clear(self, position: Position, end: int) -> bool:
        """Whether it is known that there is nothing to read up to `end`."""
        return self._clear_to.get(position, -1) >= end

    def _next_record(self, position: Position) -> FirstRecord | None:
        """The first record that is not known to be aborted; None: it has not been read."""
        return self._readable.get(position) or self._open.get(position) or self._records.get(position)

    def read(self, row: PartitionLag) -> PartitionLag:
        """The row; without a commit, with `has_records`, as far as the log is known."""
        if row.committed is not None:
            return row
        position, end = next_position(row), row.log_end_offset
        if position is None or end is None:
            return row
        record = self._next_record(position)
        has_records = not self._is_clear(position, end) and (record is None or record.offset < end)
        return row._replace(has_records=has_records)

    def of(self, row: PartitionLag, at_ms: int) -> Wait:
        """The wait of a partition, by the known facts."""
        position, end = next_position(row), row.log_end_offset
        held_at = None if position is None else self._held_at.get(position)
        holder = None if position is None or held_at is None else self._holders.of(position.topic_partition)
        if row.lag is None:
            has_no_commit = row.committed is None and row.failure is None
            return _NO_COMMIT._replace(held_at=held_at, holder=holder) if has_no_commit else _UNKNOWN
        if position is None or end is None or self._is_clear(position, end):
            return NOTHING_WAITS
        record = self._next_record(position)
        if record is not None and record.offset >= end:
            return NOTHING_WAITS  # only markers lie before the end
        seen_ms = self._ends.seen_ms(position.topic_partition, position.offset if record is None else record.offset)
        if record is None or record.timestamp < 0:
            written_ms = self._ends.written_ms(position.topic_partition, position.offset)
        elif seen_ms is None or record.timestamp <= seen_ms:
            written_ms = record.timestamp
        else:  # the clock of its producer is ahead
            written_ms = None if seen_ms >= at_ms and record.timestamp - at_ms > _AHEAD_MS else seen_ms
        if written_ms is None:
            return _UNKNOWN._replace(is_waiting=record is not None)
        is_estimated = record is None or record.timestamp != written_ms
        kept_ms = self._retention.of(row.topic).retention_ms
        # Brokers remove records by their timestamps, also by false ones.
        removed_by_ms = written_ms if record is None or record.timestamp < 0 else record.timestamp
        margin_ms = retention_margin_ms(removed_by_ms, kept_ms, at_ms)
        lag_ms = time_lag_ms(written_ms, at_ms)
        return Wait(lag_ms, is_estimated, margin_ms, kept_ms is not None, held_at=held_at, holder=holder)

    def refusals(self, topics: Iterable[str]) -> Iterator[tuple[str, Attempt, Failure]]:
        """The topics with records or settings that may not be read, with the failure."""
        for topic in topics:
            if topic in self._refused:
                yield topic, Attempt.READ_RECORDS, self._refused[topic][1]
            if (failure := self._retention.of(topic).failure) is not None:
                yield topic, Attempt.READ_SETTINGS, failure


def next_position(row: PartitionLag) -> Position | None:
    """The position at which the group continues (without a commit, the log's start); None: it has nothing to read, or
    that is unknown.
    """
    if row.log_start_offset is None or not (row.has_open_start if row.committed is None else row.lag):
        return None
    offset = row.log_start_offset if row.committed is None else max(row.committed.offset, row.log_start_offset)
    is_removed = row.log_end_offset is not None and offset >= row.log_end_offset
    return None if is_removed else Position(row.topic, row.partition, offset)


def longest(rows: Iterable[PartitionLag], waits: Iterable[Wait]) -> WaitSum:
    """The sum of several rows' waits."""
    known: int | None = None
    margin: int | None = None
    waiting = estimated = unknown = 0
    for row, wait in zip(rows, waits, strict=True):
        if wait.lag_ms is None:
            unknown += row.committed is not None or row.failure is not None
            continue
        known = wait.lag_ms if known is None else max(known, wait.lag_ms)
        waiting += wait.is_waiting
        estimated += wait.is_estimated
        if wait.margin_ms is not None:
            margin = wait.margin_ms if margin is None else min(margin, wait.margin_ms)
    return WaitSum(None if not known and unknown else known, estimated, unknown, margin, waiting)


def _is_due(asked_ms: int, at_ms: int) -> bool:
    return abs(at_ms - asked_ms) >= _TRY_AGAIN_MS  # clocks are set back


class _TimeAnswer(NamedTuple):
    at_ms: int
    retention_ms: int | None
    failure: Failure | None = None


_NOT_ASKED = _TimeAnswer(0, None)


class _Retention:
    """How long topics keep their records. A setting that a broker didn't report is unknown until the next request."""

    def __init__(self) -> None:
        self._answers: dict[str, _TimeAnswer] = {}

    async def ask(self, admin: Admin, topics: Iterable[str], at_ms: int) -> None:
        known = {topic: answer for topic in topics if (answer := self._answers.get(topic)) is not None}
        due = [topic for topic in topics if topic not in known or _is_due(known[topic].at_ms, at_ms)]
        self._answers = known
        if due:
            answers = await admin.topic_settings(due, RETENTION_SETTINGS)
            for topic, settings in answers.done.items():
                self._answers[topic] = _TimeAnswer(at_ms, retention_ms(settings))
            for topic, failure in answers.failed.items():
                self._answers[topic] = _TimeAnswer(at_ms, None, failure)

    def forget(self, topics: Iterable[str]) -> None:
        """Forgets the settings of topics that were created again."""
        for topic in topics:
            self._answers.pop(topic, None)

    def of(self, topic: str) -> _TimeAnswer:
        """A topic's retention in ms, None: unknown; and why, if it was refused."""
        return self._answers.get(topic, _NOT_ASKED)
