"""The facts of one group that does not move, in the order in which they explain it, each with a command that helps."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, Position, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.causes.records import NextRecord, next_record
from groupkeeper.operations.errors import named
from groupkeeper.operations.groups import AnyGroup, unread_topics
from groupkeeper.operations.lag import LagStatus, PartitionLag, in_both, lag_at_an_instant
from groupkeeper.operations.problems import Attempt, Problem, problem_of
from groupkeeper.operations.transactions import OpenTransaction, next_step, open_in
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError
from groupkeeper.rules.causes import (
    REBALANCING,
    Cause,
    CauseFacts,
    Pace,
    cause_of_group,
    cause_of_partition,
    is_slow,
    no_members,
)
from groupkeeper.rules.transactions import Standing, describe_transaction
from groupkeeper.rules.words import counted, rate, waiting

_RANKS = {cause: rank for rank, cause in enumerate(Cause)}
_MOST_PARTITIONS = 5
_MOST_RECORDS = 3
_PROOF_MS = 5 * 60 * 1000
"""The default of `max.poll.interval.ms`: a member that works on one batch for longer loses its membership."""

_TEXTS = {
    Cause.NO_LEADER: "no broker leads the partition: its brokers are down, or were removed",
    Cause.NO_RIGHTS: "you may not describe the topic; brokers do not tell whether the group's user may read it",
    Cause.UNASSIGNED: "{waits}, and no member is assigned the partition",
    Cause.OUT_OF_RANGE: "offset {offset} is not in the log, {start} to {end}: auto.offset.reset decides what follows",
    Cause.NEVER_COMMITTED: "nothing is committed, and the log has {waiting}",
    Cause.STUCK: "offset {offset} does not move, and {waits}",
    Cause.UNREAD: "{waits}, and no member reads the topic",
}
_WORDS = {
    Cause.UNASSIGNED: ("groups", "members"),
    Cause.NEVER_COMMITTED: ("groups", "members"),
    Cause.OUT_OF_RANGE: ("--to-earliest",),
    Cause.UNREAD: ("groups", "members"),
}


class Fact(NamedTuple):
    """A fact about a group, or one of its partitions."""

    cause: Cause
    tp: TopicPartition | None
    """The partition; None: it is about the whole group."""
    text: str
    words: tuple[str, ...]
    """The command that helps, without the cluster; `names` are its arguments."""
    names: tuple[str, ...] = ()
    offset: int | None = None
    """The committed offset; None: nothing is committed, or the fact is about the whole group."""
    transaction: OpenTransaction | None = None
    """The transaction of Cause.TRANSACTION; None: unknown, or another cause."""
    record: NextRecord | None = None
    """The next record of a stuck partition; None: not read, or there is none."""


class GroupAtInstant(NamedTuple):
    """A group at an instant."""

    group: AnyGroup
    rows: Sequence[PartitionLag]
    at_ms: int
    held: Mapping[TopicPartition, OpenTransaction | None] = {}
    """Partitions where the group's next offset is in an open transaction, with the oldest one; None: it is unknown."""
    rates: Mapping[TopicPartition, Pace] = {}
    """After one look, of some partitions or none."""
    nexts: Mapping[TopicPartition, int | None] = {}
    """The offset of the next record for readers of committed records, of some partitions; None: there is none."""
    well: Collection[TopicPartition] = ()
    """Partitions that are fine by their status."""
    apart_ms: int = _PROOF_MS
    """The time between the looks."""
    has_rebalanced: bool = False
    """Whether it did between the looks."""
    moved: Collection[TopicPartition] | None = None
    """Partitions that stand still while the group moved elsewhere; None: all, if its rates show that it moves."""

    def waiting(self, row: PartitionLag) -> int:
        """The known number of offsets that wait in a partition; 0 if only markers and aborted records do."""
        tp = row.tp
        is_done = tp not in self.held and self.nexts.get(tp, 0) is None
        return 0 if is_done else waiting_of(row) or 0


class Explained(NamedTuple):
    """The explanation. `facts`: the reason first; none if the group moves, or has read all. `rate`: the group's."""

    facts: list[Fact]
    problems: list[Problem]
    waiting: int
    rate: Pace


async def explain(admin: Admin, group_id: str, *, interval_s: float, shows_value: bool = False) -> Explained:
    """Explains a group by two looks, `interval_s` apart. Raises the failure if nothing is known of the group."""
    began_ms, first = await lag_at_an_instant(admin, [group_id], to_last_stable=True)
    _refuse_unknown(first.failed.get(group_id), first.descriptions.get(group_id))
    await asyncio.sleep(interval_s)  # also without members: a program may commit for the group without being one
    at_ms, now = await lag_at_an_instant(admin, [group_id], to_last_stable=True)
    failure, group = now.failed.get(group_id), now.descriptions.get(group_id)
    _refuse_unknown(failure, group)
    assert group is not None
    rows = now.rows.get(group_id, [])
    rates = _rates(first.rows.get(group_id, ()), rows, max(1, at_ms - began_ms))
    nexts, unknown = await _nexts(admin, rows, rates)
    held = _held(rows, nexts)
    for at in unknown:  # whether it has read up to the transaction is not known
        rates.pop(at.topic_partition, None)
    found = await open_in(admin, held)
    oldest: dict[TopicPartition, OpenTransaction | None] = dict.fromkeys(held)
    for one in reversed(found.transactions):
        oldest[one.tp] = one
    apart_ms = round(interval_s * 1000)
    known = GroupAtInstant(
        group, rows, time.time_ns() // 10**6, oldest, rates, nexts, apart_ms=apart_ms,
        has_rebalanced=_has_rebalanced(first.descriptions[group_id], group),
    )  # fmt: skip
    problems = [
        problem_of(why, Attempt.READ_RECORDS, group=group_id, topic=tp.topic, partition=tp.partition)
        for tp, why in {**{at.topic_partition: why for at, why in unknown.items()}, **found.failed}.items()
    ]
    problems += [problem_of(why) for why in found.silent] + ([problem_of(failure, group=group_id)] if failure else [])
    facts, more = await _with_records(admin, facts_of(group_id, known), rows, nexts, shows_value=shows_value)
    return Explained(facts, problems + more, sum(map(known.waiting, rows)), _sum(rates.values()))


def _refuse_unknown(failure: KafkaError | ClientError | None, group: AnyGroup | None) -> None:
    if group is None:
        raise failure or GroupIdNotFound()


def _has_rebalanced(before: AnyGroup, now: AnyGroup) -> bool:
    """Whether members joined, left or got other partitions."""
    was, is_now = ({one.member_id: frozenset(one.assignment) for one in group.members} for group in (before, now))
    return before.group_state in REBALANCING or was != is_now


def facts_of(group_id: str, known: GroupAtInstant) -> list[Fact]:
    """The facts, the reason first; for each cause the few partitions where most offsets wait."""
    group, rows = known.group, known.rows
    total = _sum(known.rates.values())
    is_simple = getattr(group, "is_simple", False)
    whole = cause_of_group(
        group.group_state, len(group.members), moves=total.consumed > 0, is_simple=is_simple,
        has_rebalanced=known.has_rebalanced,
    )  # fmt: skip
    by_cause: dict[Cause, list[PartitionLag]] = {}
    assigned = {tp for member in group.members for tp in member.assignment}
    is_readable = all(getattr(member, "is_assignment_readable", True) for member in group.members)
    unread = unread_topics(group, frozenset(row.topic for row in rows))
    for row in rows:
        is_assigned = is_simple or not is_readable or row.tp in assigned
        own = _cause_facts(row, known)._replace(is_assigned=is_assigned, is_read=row.topic not in unread)
        cause = cause_of_partition(own, has_members=bool(group.members) or is_simple)
        if cause is not None and row.tp not in known.well:
            by_cause.setdefault(cause, []).append(row)
    waiting = sum(map(known.waiting, rows))
    found = [] if whole is None or not (waiting or whole is Cause.REBALANCING) else [_of_group(group_id, whole, known)]
    for cause, some in by_cause.items():
        some.sort(key=lambda row: -(waiting_of(row) or 0))
        hung: dict[str | None, str] = {}
        if cause is Cause.STUCK and known.apart_ms >= _PROOF_MS:
            hung = _hung(some, known, moves=total.consumed > 0)
            some = _once(some, hung)
        left = len(some) - _MOST_PARTITIONS
        facts = [_of_partition(group_id, cause, row, known) for row in some[:_MOST_PARTITIONS]]
        for number, row in enumerate(some[:_MOST_PARTITIONS]):
            if why := hung.get(_member_of(row)):
                facts[number] = facts[number]._replace(text=f"{facts[number].text}; {why}", words=("groups", "members"))
        if left > 0:
            facts[-1] = facts[-1]._replace(text=f"{facts[-1].text}; the same in {counted(left, 'more partition')}")
        found += facts
    if whole is not Cause.NO_MEMBERS and is_slow(total, waiting):
        text = f"{rate(total.consumed)} are read, and {rate(total.produced)} written: the group does not catch up"
        members, count = len(group.members), len(rows)
        text += f"; {counted(members, 'member')} for {counted(count, 'partition')}" if members < count else ""
        found.append(Fact(Cause.SLOW, None, text, ("groups", "offsets", "--trend", "10s"), (group_id,)))
    return sorted(found, key=lambda fact: _RANKS[fact.cause])


def _hung(stuck: Sequence[PartitionLag], known: GroupAtInstant, *, moves: bool) -> dict[str | None, str]:
    """By member id, the text about a member whose program hangs. A single stuck partition does not count if the member
    has others and the group moves elsewhere: then one record is the likely cause.
    """
    counts = Counter(map(_member_of, known.rows))
    stopped: dict[str | None, list[PartitionLag]] = {}
    for row in stuck:
        stopped.setdefault(_member_of(row), []).append(row)
    found = {}
    for member, own in stopped.items():
        count = counts[member]
        tp = TopicPartition(own[0].topic, own[0].partition)
        if len(own) == 1 < count and (moves if known.moved is None else tp in known.moved):
            continue
        of, whom = ("of the group", "its program") if member is None else ("of this member", "the member")
        many = f"all {count} partitions {of}" if len(own) == count else f"{len(own)} of {count} {of}"
        many = f"it is the only partition {of}" if count == 1 else f"{many} stand still"
        found[member] = f"{many}: restart {whom}, or see what it does"
    return found


def _once(rows: Iterable[PartitionLag], hung: Container[str | None]) -> list[PartitionLag]:
    """The rows, but only the first one of each member that hangs."""
    told, found = set[str | None](), []
    for row in rows:
        member = _member_of(row)
        if member not in told:
            found.append(row)
        if member in hung:
            told.add(member)
    return found


def _member_of(row: PartitionLag) -> str | None:
    return None if row.member is None else row.member.member_id


def waiting_of(row: PartitionLag) -> int | None:
    """The number of offsets in the log, including those behind an open transaction; None: unknown. Of a share group the
    broker's count.
    """
    if row.committed is None or row.log_end_offset is None or row.lag is None or row.done_ahead is not None:
        return row.lag
    return max(0, row.log_end_offset - max(row.committed.offset, row.log_start_offset or 0))


async def _nexts(
    admin: Admin, rows: Iterable[PartitionLag], rates: Mapping[TopicPartition, Pace]
) -> tuple[dict[TopicPartition, int | None], dict[Position, Failure]]:
    """The next record for readers of committed records, in partitions that do not move; and why it is unknown.
    Without a commit it is the log's first one.
    """
    stops = {
        Position(row.topic, row.partition, offset): row.last_stable_offset
        for row in rows
        if (offset := row.log_start_offset if row.committed is None else row.committed.offset) is not None
        and row.last_stable_offset is not None
        and offset <= row.last_stable_offset
        and offset < (row.log_end_offset or 0)
        and row.status is not LagStatus.BELOW_LOG_START
        and (row.committed is not None or row.last_stable_offset != row.log_end_offset)
    }
    still = [at for at in stops if (one := rates.get(at.topic_partition)) is None or one.consumed <= 0]
    read = await admin.first_records([at for at in still if at.offset < stops[at]], read_committed=True)
    found = {at: read.done.get(at) for at in still if at not in read.failed}
    nexts = {at.topic_partition: None if record is None else record.offset for at, record in found.items()}
    return nexts, read.failed


def _held(rows: Iterable[PartitionLag], nexts: Mapping[TopicPartition, int | None]) -> list[TopicPartition]:
    """The partitions where readers of committed records have reached the first open transaction. Markers and aborted
    records may be left before it.
    """
    ends = {row.tp: (row.last_stable_offset, row.log_end_offset) for row in rows}
    return [tp for tp, one in nexts.items() if one is None and ends[tp][0] != ends[tp][1]]


def _cause_facts(row: PartitionLag, known: GroupAtInstant) -> CauseFacts:
    tp = row.tp
    return CauseFacts(
        known.waiting(row),
        row.status is LagStatus.NO_LEADER,
        row.status is LagStatus.NOT_AUTHORIZED,
        tp in known.held,
        is_out_of_range=row.status in (LagStatus.BELOW_LOG_START, LagStatus.BEYOND_LOG_END),
        has_open_start=row.has_open_start and row.in_log is not None and row.failure is None,
        rate=known.rates.get(tp),
    )


def _rates(
    before: Iterable[PartitionLag], after: Iterable[PartitionLag], between_ms: int
) -> dict[TopicPartition, Pace]:
    found: dict[TopicPartition, Pace] = {}
    for was, row, written, read in in_both(before, after):
        found[row.tp] = Pace(written * 1000 / between_ms, read * 1000 / between_ms, bool(waiting_of(was)))
    return found


def _sum(rates: Iterable[Pace]) -> Pace:
    known = list(rates)
    return Pace(sum(map(attrgetter("produced"), known)), sum(map(attrgetter("consumed"), known)))


def _of_group(group_id: str, cause: Cause, known: GroupAtInstant) -> Fact:
    group = known.group
    if cause is Cause.NO_MEMBERS:
        text = no_members(sum(map(known.waiting, known.rows)))
        return Fact(cause, None, text, ("groups", "watch"), (group_id,))
    epoch = getattr(group, "group_epoch", None)
    late = [one for one in group.members if epoch is not None and (getattr(one, "member_epoch", None) or 0) < epoch]
    is_now = group.group_state in REBALANCING
    text = f"the group is rebalancing ({group.group_state})" if is_now else "the group rebalanced between the two looks"
    text += f"; not in the newest assignment yet: {named(late)}" if late else ""
    return Fact(cause, None, text, ("groups", "watch"), (group_id,))


def _of_partition(group_id: str, cause: Cause, row: PartitionLag, known: GroupAtInstant) -> Fact:
    tp = row.tp
    offset = None if row.committed is None else row.committed.offset
    if cause is Cause.TRANSACTION:
        return _of_transaction(row, known.held[tp], known)._replace(offset=offset)
    records = (row.in_log if row.committed is None else known.waiting(row)) or 0
    text = _TEXTS[cause].format(
        offset=offset,
        start=row.log_start_offset,
        end=row.log_end_offset,
        waiting=counted(records, "record"),
        waits=waiting(records, "record"),
    )
    text += "" if row.member is None else f"; its member is {named([row.member])}"
    words = _WORDS.get(cause, ("groups", "offsets", "--status", row.status.value))
    if cause is Cause.STUCK:
        skipped = 1 + (known.nexts.get(tp) or offset or 0) - (offset or 0)
        words = ("--shift-by", str(skipped))
    if cause is Cause.STUCK and known.apart_ms < _PROOF_MS:
        words = ("groups", "why", "--interval", f"{_PROOF_MS // 60_000}m")
    elif cause in (Cause.OUT_OF_RANGE, Cause.STUCK):
        words = ("plan", "reset", "--topic", f"{row.topic}:{row.partition}", *words)
    return Fact(cause, tp, text, words, (group_id,), offset)


def _of_transaction(row: PartitionLag, one: OpenTransaction | None, known: GroupAtInstant) -> Fact:
    tp = row.tp
    text = f"an open transaction keeps consumers of committed records at offset {row.last_stable_offset}"
    if one is None:
        return Fact(Cause.TRANSACTION, tp, text, *next_step(Standing.UNKNOWN, None, *tp))
    standing, open_ms = one.standing(known.at_ms), one.open_ms(known.at_ms)
    name = one.name if one.transactional_id is None else f"{one.name} of producer {one.producer.producer_id}"
    text += f": {describe_transaction(name, standing, open_ms, one.description and one.description.timeout_ms)}"
    return Fact(
        Cause.TRANSACTION, tp, text, *next_step(standing, one.transactional_id, *tp), transaction=one
    )  # fmt: skip


async def _with_records(
    admin: Admin,
    facts: Sequence[Fact],
    rows: Sequence[PartitionLag],
    nexts: Mapping[TopicPartition, int | None],
    *,
    shows_value: bool,
) -> tuple[list[Fact], list[Problem]]:
    """The facts; those of the first few stuck partitions with the record there."""
    ends = {row.tp: row.log_end_offset or 0 for row in rows}
    found, problems = list(facts), list[Problem]()
    stuck = [number for number, fact in enumerate(facts) if fact.cause is Cause.STUCK]
    for number in stuck[:_MOST_RECORDS]:
        fact = facts[number]
        tp, offset = fact.tp, fact.offset
        if tp is None or offset is None:
            continue
        offset = nexts.get(tp) or offset
        try:
            record = await next_record(admin, tp, offset, ends[tp], shows_value=shows_value)
        except (KafkaError, ClientError) as failure:
            problems.append(problem_of(failure, Attempt.READ_RECORDS, topic=tp.topic, partition=tp.partition))
            continue
        found[number] = fact._replace(record=record)
    return found, problems
