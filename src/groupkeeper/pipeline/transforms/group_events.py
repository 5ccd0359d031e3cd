"""tables.GROUP_EVENTS: what happened to groups, from consecutive records of the same key."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline import relations as rel
from groupkeeper.pipeline.relations import Array, Rows
from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUPS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.transforms.record_kinds import KIND_OF, RecordKind, rows_of

SHOWS = (RecordKind.GROUP, RecordKind.MEMBER, RecordKind.TARGET)
"""The kinds of records that show events."""

_PERSON = ("member_id", "instance_id", "client_id", "client_host")
_NUMBERS = ("generation", "group_epoch", "assignment_epoch")
_COLUMNS = (
    *GROUPS.key, "record_name", "group_type", "is_tombstone", "log_partition", "log_offset", *_NUMBERS, *_PERSON,
    "members", "log_time", "problem",
)  # fmt: skip

_Person = tuple[str | None, ...]
"""The values of _PERSON."""
_Event = tuple[str, _Person]
"""The name of an event, and the member that it is about."""
_NOBODY: _Person = ("", None, None, None)


class _Record(NamedTuple):
    """A record that shows events; a field that it doesn't have is None."""

    name: str
    group_type: str | None
    is_gone: bool
    log_partition: int
    log_offset: int
    generation: int | None
    group_epoch: int | None
    assignment_epoch: int | None
    person: _Person
    people: Sequence[_Person]
    time: int | None
    """In µs."""
    is_new: bool

    @property
    def ids(self) -> list[str | None]:
        """The members of a classic group."""
        return [person[0] for person in self.people]

    @property
    def number(self) -> int | None:
        """A number that grows while the group exists: its generation or epoch."""
        numbers = (self.generation, self.group_epoch, self.assignment_epoch)
        return next((number for number in numbers if number is not None), None)

    @property
    def is_young(self) -> bool:
        """Whether the group is at its first generation or epoch."""
        return (self.generation if self.generation is not None else self.group_epoch or 0) <= 1


class _Moves(NamedTuple):
    """Changes of the group's type (KIP-848), at which no member joins or leaves. `into` and `out`: offsets of the
    records that create and end a type; `members`: by time, as a type may last less than a millisecond.
    """

    into: set[int]
    out: set[int]
    members: dict[int | None, set[str | None]]


class _Step(NamedTuple):
    """A record, the one before it of the same key, and the group after it."""

    record: _Record
    last: _Record | None
    was_there: bool
    """Whether the member or group of this record existed before it."""
    members: int
    began: int | None
    """The time of the group's first record, µs; None: not known."""

    def grows(self, name: str) -> bool:
        """Whether a field is larger than in the record before, or there was no record before."""
        number = getattr(self.record, name)
        then = getattr(self.last, name) if self.was_there else None
        return number is not None and (then is None or number > then)


def group_events(group_records: Rows, last_records: Rows, facts: Rows, column: str) -> pa.Table:
    """The events in `group_records`. If compaction has removed earlier records, a group's first remaining record does
    not show that the group was created or its members joined then. `last_records`: the carried records before these,
    which give no events; `facts`: since when groups have existed. `column` is always false: events are final.
    """
    new, carried, since = _shown(group_records), _shown(last_records), rel.loaded(facts, (*GROUPS.key, "began"))
    of_new, of_carried, of_facts = rel.keys(GROUPS.key, new, carried, since)
    carried, since = (
        rows.filter(pa.array(rel.matches(of, of_new) >= 0)) for rows, of in ((carried, of_carried), (since, of_facts))
    )
    whole = rel.together(new, carried)
    order, groups = rel.runs(GROUPS.key, whole)
    records = _records(rel.taken(whole, order), order < len(new))
    began = dict(zip(_groups(since), rel.values(since["began"].cast(pa.int64())), strict=True))
    found = []
    for group, start, size in zip(
        _groups(rel.taken(whole, order[groups.starts])), groups.starts, groups.sizes, strict=True
    ):
        own = records[start : start + size]
        found += [_row(group, *told) for told in _events(own, _moves(own), began.get(group))]
    schema = GROUP_EVENTS.arrow
    columns = zip(*found, strict=True) if found else [()] * len(schema)
    arrays = [
        pa.array(each, pa.int64() if kind == TIME else kind).cast(kind)
        for each, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.table([*arrays, pa.repeat(False, len(found))], schema.append(pa.field(column, pa.bool_())))


def _row(group: tuple[str, str], step: _Step, event: str, person: _Person) -> tuple[Any, ...]:
    """A row of tables.GROUP_EVENTS, with times in µs."""
    one = step.record
    place = (one.log_partition, one.log_offset)
    return (*group, one.time, event, *person, one.generation, one.group_epoch, step.members, *place)


def _groups(rows: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(*(rel.values(rows[name]) for name in GROUPS.key), strict=True)


def _shown(records: Rows) -> pa.Table:
    rows = rel.loaded(records, _COLUMNS)
    is_shown = rows_of(rows["record_name"], *SHOWS) & ~rel.is_known(rows["problem"]) & rel.is_known(rows["group_id"])
    return rows.filter(pa.array(is_shown))


def _records(rows: pa.Table, is_new: Array) -> list[_Record]:
    persons = zip(*(rel.values(rows[name]) for name in _PERSON), strict=True)
    members = rows["members"].combine_chunks()
    each = list(zip(*(rel.values(pc.struct_field(pc.list_flatten(members), name)) for name in _PERSON), strict=True))
    ends = np.cumsum(rel.numbers(pc.list_value_length(members))).tolist()
    people = (each[start:end] for start, end in itertools.pairwise([0, *ends]))
    plain = (rel.values(rows[name]) for name in _COLUMNS[2:10])
    time = rel.values(rows["log_time"].cast(pa.int64()))
    return [_Record(*row) for row in zip(*plain, persons, people, time, is_new.tolist(), strict=True)]


def _moves(records: Sequence[_Record]) -> _Moves:
    """The changes of type in the records of a group."""
    found = _Moves(set(), set(), defaultdict(set))
    last: dict[str, _Record] = {}
    gone: tuple[_Record, Sequence[str | None]] | None = None
    for one in records:
        if gone is not None and gone[0].time != one.time:  # clocks go back: a later time may be the same again
            gone = None
        if KIND_OF[one.name] is not RecordKind.GROUP:
            continue
        then = last.get(one.name)
        last[one.name] = one
        if one.is_gone:
            gone = one, then.ids if then is not None else ()
            continue
        if gone is not None and one.time is not None and gone[0].group_type != one.group_type:
            found.into.add(one.log_offset)
            found.out.add(gone[0].log_offset)
            found.members[one.time].update(one.ids if one.group_type == "classic" else gone[1])
        gone = None
    return found


def _events(
    records: Sequence[_Record], moves: _Moves, began: int | None
) -> Iterator[tuple[_Step, str, _Person]]:  # fmt: skip
    """The events of the new records among a group's records."""
    last: dict[tuple[str, str | None], _Record] = {}
    members = 0
    of_kind = {RecordKind.GROUP: _of_group, RecordKind.MEMBER: _of_member, RecordKind.TARGET: _of_target}
    for one in records:
        kind, key = KIND_OF[one.name], (one.name, one.person[0])
        then = last.get(key)
        last[key] = one
        # A smaller number belongs to a group that was created again: compaction has removed the tombstone between.
        number, number_then = one.number, None if then is None else then.number
        has_fallen = number is not None and number_then is not None and number < number_then
        was_there = then is not None and not then.is_gone and not has_fallen
        members += (not one.is_gone) - was_there if kind is RecordKind.MEMBER else 0
        began = min((time for time in (began, one.time) if time is not None), default=None)
        if one.is_new:
            has_list = one.group_type == "classic" and not one.is_gone
            step = _Step(one, then, was_there, len(one.people) if has_list else max(members, 0), began)
            for event, person in of_kind[kind](step, moves):
                yield step, event, person


def _of_group(step: _Step, moves: _Moves) -> Iterator[_Event]:
    one = step.record
    if one.is_gone:
        if one.log_offset not in moves.out:  # a group with only offsets has no other record
            yield "deleted", _NOBODY
        return
    if one.log_offset in moves.into:
        yield "migrated", _NOBODY
    elif not step.was_there and (one.is_young or step.last is not None or _is_second_of_new(step)):
        yield "created", _NOBODY
    if step.was_there and step.grows("group_epoch"):
        yield "epoch_bumped", _NOBODY
    if one.group_type == "classic":
        yield from _of_classic(step, is_moved=one.log_offset in moves.into)


def _is_second_of_new(step: _Step) -> bool:
    """Whether a record creates a group of a newer protocol: since Kafka 4.3 the first epoch in the log is 2, written
    together with the first member. An epoch 2 that compaction left has earlier records.
    """
    one = step.record
    return one.group_epoch == 2 and step.members == 1 and one.time is not None and step.began == one.time


def _of_classic(step: _Step, *, is_moved: bool) -> Iterator[_Event]:
    """The events of a classic group's record, which has all members."""
    one, last = step.record, step.last
    if step.grows("generation") and step.members:
        yield "rebalanced", _NOBODY
    if not step.members and not one.is_young and (last is None or last.people):
        yield "emptied", _NOBODY
    if is_moved or (last is None and not one.is_young):
        return
    before = last.people if step.was_there and last is not None else ()
    for event, people, others in (("joined", one.people, before), ("left", before, one.people)):
        ids = {person[0] for person in others}
        yield from ((event, person) for person in people if person[0] not in ids)


def _of_member(step: _Step, moves: _Moves) -> Iterator[_Event]:
    one = step.record
    if one.person[0] in moves.members.get(one.time, ()):
        return
    then = (None,) * len(_PERSON) if step.last is None else step.last.person
    person = tuple(own if own is not None else known for own, known in zip(one.person, then, strict=True))
    if one.is_gone:
        yield "left", person
        if step.was_there and not step.members:
            yield "emptied", _NOBODY
    elif not step.was_there:
        yield "joined", person


def _of_target(step: _Step, _: _Moves) -> Iterator[_Event]:
    if not step.record.is_gone and step.grows("assignment_epoch") and step.members:
        yield "rebalanced", _NOBODY
