"""The tables of one cluster, slowly: a replay of its records in plain Python, as docs/pipeline-tables.md has it."""

from __future__ import annotations

import base64
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.spark.transforms.histories import DAY, MINUTE, History, Logged

from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_subscribed_topics
from groupkeeper.protocol.primitives import ZERO_UUID

RETENTION, PATIENCE = 7 * DAY, 21 * MINUTE
Place = tuple[str, str, int]
Row = tuple[Any, ...]


def seen(history: History) -> list[Logged]:
    """What a reader of committed records gets; markers too."""
    found, aborts = [], {}
    for one in reversed(history.records):
        if one.ends is not None:
            aborts[one.producer_id] = not one.ends
        if one.offset >= history.stable:
            continue
        if one.ends is not None or one.producer_id < 0 or not aborts[one.producer_id]:
            found.append(one)
    return found[::-1]


def group_of(one: Logged) -> str:
    found = getattr(one.key, "group_id", None)
    return str(one.key.group if found is None else found)  # type: ignore[union-attr]


def place_of(one: Logged) -> Place:
    assert isinstance(one.key, m.OffsetCommitKey)
    return one.key.group, one.key.topic, one.key.partition


def type_of(name: str) -> str:
    return next((kind.lower() for kind in ("Consumer", "Share", "Streams") if name.startswith(kind)), "classic")


def is_level(name: str) -> bool:
    return name in ("GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata", "StreamsGroupMetadata")


def topics_of(value: m.GroupMetadataValue) -> set[str] | None:
    """What the members of a classic group read; None: not all of them say it."""
    found: set[str] = set()
    for member in value.members:
        try:
            if value.protocol_type != "consumer":
                return None
            found.update(decode_subscribed_topics(member.subscription) if member.subscription else [])
        except MalformedMessage:
            return None
    return found


def commits_of(records: Iterable[Logged]) -> list[Logged]:
    return [one for one in records if one.name == "OffsetCommit"]


def current_offsets(records: Iterable[Logged]) -> dict[Place, Row]:
    last = {place_of(one): one for one in commits_of(records)}
    return {place: shown(one) for place, one in last.items() if one.value is not None}


def shown(one: Logged) -> Row:
    value = one.value
    assert isinstance(value, m.OffsetCommitValue)
    topic_id = base64.urlsafe_b64encode(value.topic_id).rstrip(b"=").decode()
    return (
        value.offset, None if value.leader_epoch < 0 else value.leader_epoch,
        None if value.topic_id == ZERO_UUID else topic_id, value.metadata, value.commit_timestamp,
        None if value.expire_timestamp == -1 else value.expire_timestamp, one.offset,
    )  # fmt: skip


def removed_by(records: list[Logged]) -> dict[int, str]:
    """By the tombstone's offset."""
    found: dict[int, str] = {}
    before: dict[Place, Logged] = {}
    level: dict[str, Logged] = {}
    changed: dict[str, int] = {}
    for one in records:
        if one.name == "OffsetCommit":
            place = place_of(one)
            if one.value is None:
                found[one.offset] = _cause(one, before.get(place), level.get(place[0]), changed.get(place[0], -(2**63)))
            before[place] = one
        elif one.key is not None:
            changed[group_of(one)] = one.time_ms
            if one.name == "GroupMetadata":
                level[group_of(one)] = one
    return found


def _cause(one: Logged, before: Logged | None, level: Logged | None, changed: int) -> str:
    if before is None or not isinstance(before.value, m.OffsetCommitValue):
        return "unknown"
    base = before.value.commit_timestamp
    classic = level.value if level is not None and isinstance(level.value, m.GroupMetadataValue) else None
    if classic is not None and classic.protocol_type:
        topics = topics_of(classic)
        if classic.members and (topics is None or place_of(one)[1] in topics):
            return "deleted"  # it cannot expire
        if not classic.members and classic.current_state_timestamp != -1:
            base = classic.current_state_timestamp
    due = base + RETENTION if before.value.expire_timestamp == -1 else before.value.expire_timestamp
    if one.time_ms < due:
        return "deleted"
    return "expired" if one.time_ms <= max(due, changed) + PATIENCE else "unknown"


class Event(NamedTuple):
    """A row of group_events."""

    group_id: str
    time_ms: int
    event: str
    member_id: str
    members: int
    offset: int


def events(records: Iterable[Logged]) -> list[Event]:
    own: dict[str, list[Logged]] = defaultdict(list)
    for one in records:
        if one.key is not None and one.name != "OffsetCommit":
            own[group_of(one)].append(one)
    return [event for group_id, those in own.items() for event in _Life(group_id, those).events()]


class _Life:
    """The records of a group, one after the other."""

    def __init__(self, group_id: str, records: list[Logged]) -> None:
        self.group_id, self.records = group_id, records
        self.last: dict[tuple[str, str | None], Logged] = {}
        self.moves_in: set[int] = set()
        self.moves_out: set[int] = set()
        self.moved: dict[int, set[str]] = defaultdict(set)
        self._find_moves()

    def _find_moves(self) -> None:
        """From one type to another at once: a tombstone, and the other type at the same time."""
        roster: set[str] = set()
        out: Logged | None = None
        was: set[str] = set()
        for one in self.records:
            if out is not None and out.time_ms != one.time_ms and shows(one):
                out = None
            if not is_level(one.name):
                continue
            if one.value is None:
                out, was = one, roster if one.name == "GroupMetadata" else set()
            else:
                if out is not None and out.name != one.name:
                    self.moves_in.add(one.offset)
                    self.moves_out.add(out.offset)
                    self.moved[one.time_ms] |= was if one.name != "GroupMetadata" else _roster(one)
                out = None
            if one.name == "GroupMetadata":
                roster = _roster(one)

    def events(self) -> Iterator[Event]:
        for one in self.records:
            key = (one.name, getattr(one.key, "member_id", None))
            before = self.last.get(key)
            self.last[key] = one
            for event, member_id in self._events(one, before):
                yield Event(self.group_id, one.time_ms, event, member_id, self._count(one), one.offset)

    def _count(self, one: Logged) -> int:
        if type_of(one.name) == "classic" and one.value is not None:
            return len(_roster(one))
        return sum(name.endswith("GroupMemberMetadata") and r.value is not None for (name, _), r in self.last.items())

    def _events(self, one: Logged, before: Logged | None) -> Iterator[tuple[str, str]]:
        is_there = before is not None and before.value is not None
        number = _number(one)
        if is_there and number is not None and before is not None and number < (_number(before) or 0):
            is_there = False  # it was deleted meanwhile: the log no longer shows it
        if is_level(one.name):
            yield from self._of_level(one, before, is_there, number)
        elif one.name.endswith("TargetAssignmentMetadata"):
            if number is not None and (not is_there or number > (_number(before) or 0)) and self._count(one) > 0:
                yield "rebalanced", ""
        elif one.name.endswith("GroupMemberMetadata"):
            member_id = one.key.member_id  # type: ignore[union-attr]
            if member_id in self.moved.get(one.time_ms, ()):
                return
            if one.value is not None and not is_there:
                yield "joined", member_id
            if one.value is None:
                yield "left", member_id
            if one.value is None and is_there and self._count(one) == 0:
                yield "emptied", ""

    def _of_level(
        self, one: Logged, before: Logged | None, is_there: bool, number: int | None
    ) -> Iterator[tuple[str, str]]:
        if one.value is None:
            if one.offset not in self.moves_out:
                yield "deleted", ""
            return
        assert number is not None
        is_in, is_young = one.offset in self.moves_in, number <= 1
        has_grown = not is_there or number > (_number(before) or 0)
        if is_in:
            yield "migrated", ""
        elif not is_there and (is_young or before is not None or self._is_second_epoch_of_new(one, number)):
            yield "created", ""
        if type_of(one.name) != "classic":
            if is_there and has_grown:
                yield "epoch_bumped", ""
            return
        people, earlier = _roster(one), _roster(before)
        if has_grown and people:
            yield "rebalanced", ""
        if not people and not is_young and (before is None or (is_there and earlier)):
            yield "emptied", ""
        if not is_in and (before is not None or is_young):
            known = earlier if is_there else set()
            yield from (("joined", name) for name in people - known)
            yield from (("left", name) for name in known - people)

    def _is_second_epoch_of_new(self, one: Logged, number: int) -> bool:
        """Since Kafka 4.3 the first epoch in the log is 2, written with the member that came."""
        steps = (each.time_ms for each in self.records if each.offset <= one.offset and shows(each))
        is_alone = self._count(one) == 1 and min(steps) == one.time_ms
        return type_of(one.name) != "classic" and number == 2 and is_alone


def shows(one: Logged) -> bool:
    """Whether it may show an event."""
    return is_level(one.name) or one.name.endswith(("GroupMemberMetadata", "TargetAssignmentMetadata"))


def _roster(one: Logged | None) -> set[str]:
    return (
        {member.member_id for member in one.value.members}
        if one and isinstance(one.value, m.GroupMetadataValue)
        else set()
    )


def _number(one: Logged | None) -> int | None:
    """What counts the lives of a group: generation, epoch, epoch of the assignment."""
    value = None if one is None else one.value
    if value is None:
        return None
    for name in ("generation", "epoch", "assignment_epoch"):
        if name in value.__slots__ and (is_level(one.name) or name == "assignment_epoch"):  # type: ignore[union-attr]
            return int(getattr(value, name))
    return None


def members(records: Iterable[Logged]) -> set[Row]:
    """Group, member, epoch, its state's number."""
    found: set[Row] = set()
    last = {(one.name, str(one.key)): one for one in records if one.key is not None}
    for one in last.values():
        if isinstance(one.value, m.GroupMetadataValue):
            found |= {(group_of(one), "classic", name, None) for name in _roster(one)}
        elif one.value is not None and one.name.endswith("GroupMemberMetadata"):
            key = (group_of(one), one.key.member_id)  # type: ignore[union-attr]
            kind = one.name.removesuffix("MemberMetadata")
            has = [
                each.value.member_epoch  # type: ignore[attr-defined]
                for each in last.values()
                if each.value is not None
                and each.name == f"{kind}CurrentMemberAssignment"
                and (group_of(each), each.key.member_id) == key  # type: ignore[union-attr]
            ]
            found.add((key[0], type_of(kind), key[1], has[0] if has else None))
    return found


def groups(records: list[Logged]) -> dict[str, Row]:
    """Type, state, number of members, generation or epoch, partitions, last commit, last rebalance."""
    level = {}
    last = {(one.name, str(one.key)): one for one in records if one.key is not None}
    for one in records:
        if is_level(one.name):
            if one.value is not None:
                level[group_of(one)] = one
            elif (now := level.get(group_of(one))) is not None and now.name == one.name:
                del level[group_of(one)]
    offsets: dict[str, list[Row]] = defaultdict(list)
    for place, row in current_offsets(records).items():
        offsets[place[0]].append(row)
    rebalanced: dict[str, int] = {}
    for event in events(records):
        if event.event == "rebalanced":
            rebalanced[event.group_id] = max(event.time_ms, rebalanced.get(event.group_id, -(2**63)))
    found: dict[str, Row] = {}
    for group_id in {*level, *offsets}:
        own = offsets.get(group_id, [])
        standing = (len(own), max((row[4] for row in own), default=None), rebalanced.get(group_id))
        if group_id not in level:
            found[group_id] = ("simple", "Empty", 0, None, *standing)
            continue
        one = level[group_id]
        those = [each for each in last.values() if each.value is not None and group_of(each) == group_id]
        kind = type_of(one.name)
        count = len(_roster(one)) if kind == "classic" else sum(e.name.endswith("GroupMemberMetadata") for e in those)
        found[group_id] = (kind, _state(one, kind, count, those), count, _number(one), *standing)
    return found


def _state(one: Logged, kind: str, count: int, those: list[Logged]) -> str:
    if not count:
        return "Empty"
    if kind in ("classic", "share"):
        return "Stable"
    if kind == "streams":
        return "Unknown"
    targets = [_number(each) for each in those if each.name.endswith("TargetAssignmentMetadata")]
    epoch = targets[0] if targets and targets[0] is not None else -1
    if (_number(one) or 0) > epoch:
        return "Assigning"
    current = [each.value for each in those if each.name.endswith("CurrentMemberAssignment")]
    settled = [v for v in current if v.state == 0 and v.member_epoch == epoch]  # type: ignore[union-attr]
    return "Stable" if len(settled) == len(current) == count else "Reconciling"


def rates(records: list[Logged]) -> dict[tuple[str | None, int], list[int]]:
    """By group and minute the columns of tables.RATES."""
    found: dict[tuple[str | None, int], list[int]] = defaultdict(lambda: [0] * 6)

    def count(group_id: str, time_ms: int, column: int) -> None:
        for name in (group_id, None):
            found[name, time_ms // MINUTE][column] += 1

    happened = events(records)
    for event in happened:
        if event.event == "rebalanced":
            count(event.group_id, event.time_ms, 3)
    cause = removed_by(records)
    for one in commits_of(records):
        group_id = place_of(one)[0]
        if one.value is not None:
            count(group_id, one.time_ms, 0)
            continue
        is_with_group = _is_with_group(records, happened, one)
        column = {"expired": 1, "deleted": 5 if is_with_group else 2, "unknown": 4}[cause[one.offset]]
        count(group_id, one.time_ms, column)
    return dict(found)


def _is_with_group(records: list[Logged], happened: list[Event], gone: Logged) -> bool:
    """Whether the group's deletion follows at the same time, and nothing of the group with another time between."""
    group_id = place_of(gone)[0]
    deletions = {each.offset for each in happened if (each.group_id, each.event) == (group_id, "deleted")}
    later = [one for one in records if one.offset > gone.offset and one.key is not None and group_of(one) == group_id]
    at_once = itertools.takewhile(lambda one: one.time_ms == gone.time_ms, later)
    return any(one.offset in deletions for one in at_once)


def rewinds(records: list[Logged]) -> set[Row]:
    """Place, from, to, records between, direction, whether the group was empty, the record's offset."""
    happened: dict[tuple[str, int], int] = {}
    for event in events(records):
        key = (event.group_id, event.offset)
        happened[key] = min(event.members, happened.get(key, event.members))
    found: set[Row] = set()
    before: dict[Place, m.OffsetCommitValue] = {}
    gone: set[Place] = set()
    empty: dict[str, bool] = {}
    for one in records:
        if one.key is not None and (group_of(one), one.offset) in happened:
            empty[group_of(one)] = happened[group_of(one), one.offset] == 0
        if one.name != "OffsetCommit":
            continue
        place = place_of(one)
        if not isinstance(one.value, m.OffsetCommitValue):
            gone.add(place)
            continue
        last, now = before.get(place), one.value
        before[place] = now
        was_gone = place in gone
        gone.discard(place)
        if last is None or (ZERO_UUID not in (last.topic_id, now.topic_id) and last.topic_id != now.topic_id):
            continue
        is_empty = empty.get(place[0])
        if now.offset < last.offset or (now.offset > last.offset and is_empty and not was_gone):
            direction = "back" if now.offset < last.offset else "ahead"
            between = last.offset - now.offset
            records_again = between if -(2**63) <= between < 2**63 else None
            found.add((*place, last.offset, now.offset, records_again, direction, is_empty, one.offset))
    return found


def offsets_as_of(records: list[Logged], time_ms: int) -> dict[Place, Row]:
    """Offset, leader epoch, topic id, metadata, commit's time. A transaction's commits are there from its marker on."""
    known: dict[Place, Logged] = {}
    for number, one in enumerate(records):
        if one.name != "OffsetCommit":
            continue
        since = one.time_ms
        if one.producer_id >= 0:
            ends = (
                each.time_ms
                for each in records[number:]
                if each.ends is not None and each.producer_id == one.producer_id
            )
            since = next(ends, since)  # the marker may lie behind the last stable offset
        if since <= time_ms:
            known[place_of(one)] = one
    return {place: shown(one)[:5] for place, one in known.items() if one.value is not None}


def lag(records: list[Logged], logs: dict[tuple[str, int], Log]) -> dict[Place, Row]:
    """Lag, lag of a reader of committed records, the lag in time and how it is known."""
    points: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for one in commits_of(records):
        if isinstance(one.value, m.OffsetCommitValue):
            own = points[place_of(one)[1:]]
            own[one.value.offset] = min(one.value.commit_timestamp, own.get(one.value.offset, 2**63))
    found: dict[Place, Row] = {}
    for place, row in current_offsets(records).items():
        log, at = logs[place[1:]], row[0]
        behind, committed = (max(0, end - max(at, 0)) for end in (log.end, log.stable))
        first = log.records.get(at, Unread)
        if behind == 0 or first is None:
            waits = 0
            basis = "exact"
        elif isinstance(first, int):
            waits, basis = max(0, log.measured_ms - first), "exact"
        else:
            estimate = _interpolated(at, points[place[1:]], log)
            waits, basis = max(0, log.measured_ms - estimate), "interpolated"
        found[place] = (behind, committed, waits, _committed_waits(log, at, committed, waits), basis)
    return found


Unread = object()


def _committed_waits(log: Log, at: int, committed: int, waits: int) -> int:
    if committed == 0 or log.records.get(at, Unread) is None:
        return 0
    if not isinstance(log.records.get(at), int):
        return waits
    first = log.committed[at]
    return 0 if first is None else max(0, log.measured_ms - first)


class Log(NamedTuple):
    """A partition as it was measured; `records` has the time of the first record from a committed offset on, None:
    there is none, Unread (or missing): it could not be read, or has no time. `committed` has the same of the first one
    that no transaction has aborted, for those that have a time.
    """

    start: int
    stable: int
    end: int
    measured_ms: int
    records: dict[int, object]
    committed: dict[int, int | None]


def _interpolated(at: int, points: dict[int, int], log: Log) -> int:
    """Whoever commits an offset of the log shows that the records before it were there."""
    low = max(offset for offset in points if offset <= at)
    high = min((offset for offset in points if at < offset <= log.end), default=None)
    end, end_ms = (log.end, log.measured_ms) if high is None else (high, points[high])
    share = (float(at) - float(low)) / (float(end) - float(low))
    return min(int(points[low] + share * (end_ms - points[low])), end_ms)
