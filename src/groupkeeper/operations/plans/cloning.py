"""Plans that give a group the offsets of another one, in the same cluster or translated from another cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Failure,
    FirstRecord,
    OffsetAndMetadata,
    Position,
    TopicPartition,
)
from groupkeeper.operations.errors import NoSuchTime, OutOfRange, PartitionsDiffer, TimeUnknown
from groupkeeper.operations.plans.by_time import Since, committed_before, committed_from, first_since, toured
from groupkeeper.operations.plans.deleting import chosen, lacking, nothing
from groupkeeper.operations.plans.making import Made, Otherwise, Policies, Topics, with_times
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, Trouble
from groupkeeper.operations.plans.recording import cluster_id_of
from groupkeeper.operations.plans.translating import Ends, Facts, Found, Lookups, Part, is_to_come, translate
from groupkeeper.operations.plans.world import Groups, Logs, last_records, look_at_groups, look_at_logs, will_be_made
from groupkeeper.operations.reset import INACTIVE
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.topics import HIDDEN, hides_topics
from groupkeeper.protocol.errors import GroupIdNotFound, TopicAuthorizationFailed


class Source(NamedTuple):
    """The group to copy offsets from. ``admin`` None: in the same cluster.

    ``topic_prefix``: the prefix that replication adds to topic names in the target cluster.
    """

    group_id: str
    admin: Admin | None = None
    topic_prefix: str = ""


async def make_clone(
    admin: Admin,
    source: Source,
    target: str,
    topics: Topics,
    policies: Policies,
    made_ms: int,
    command: tuple[str, ...] = (),
    *,
    timeout_ms: int | None = None,
) -> Made:
    """The plan that gives ``target`` in ``admin``'s cluster what the source group has committed. Changes nothing.

    For the same topics of the same cluster, offsets are copied as they are, and may be outside of the log. Else an
    offset becomes that of the first record with the time of the source's next record; ``why``, ``skips`` and
    ``replays`` describe how exact that is. Partitions that the target lacks, or whose time cannot be known, are
    troubles, as are those of topics that have another number of them there and are not named one by one. Raises the
    failure of a whole cluster.
    """
    theirs = source.admin or admin
    cluster_id = await cluster_id_of(admin, timeout_ms=timeout_ms)
    is_here = await _is_here(source, cluster_id, timeout_ms)
    groups = await look_at_groups(theirs, [source.group_id], timeout_ms=timeout_ms)
    targets = await look_at_groups(admin, [target], timeout_ms=timeout_ms)
    in_the_way = {**targets.failed, **groups.failed}
    if groups.absent and not is_here:
        in_the_way[source.group_id] = GroupIdNotFound(f"Group {source.group_id} not found.")
    if in_the_way or groups.absent:
        troubles = [Trouble(group_id, None, why) for group_id, why in in_the_way.items()]
        return Made(Plan(cluster_id, (), Kind.CLONE), tuple(troubles), (), groups.absent if is_here else ())
    committed = groups.committed[source.group_id]
    places = sorted(chosen(topics, committed))
    named = {tp: TopicPartition(source.topic_prefix + tp.topic, tp.partition) for tp in places}
    logs = await look_at_logs(admin, named.values(), timeout_ms=timeout_ms)
    troubles = _unusable(target, named.values(), logs)
    usable = {tp: committed[tp] for tp in places if named[tp] not in logs.failed}
    remarks = _remarks(groups, source, has_translation=not is_here)
    remarks += [HIDDEN] if await hides_topics(theirs, timeout_ms=timeout_ms) else []
    if is_here and not source.topic_prefix:
        why = f"exactly as {source.group_id} has it"
        found = {tp: Found(commit.offset, why, leader_epoch=commit.leader_epoch) for tp, commit in usable.items()}
        failed: Mapping[TopicPartition, Failure] = {}
    else:
        translated, failed = await _translated(theirs, admin, usable, named, logs, topics, timeout_ms)
        found = _chosen(translated, failed, named, policies, remarks)
    troubles += (Trouble(target, named[tp], why) for tp, why in failed.items())
    troubles += (Trouble(source.group_id, place, nothing(place)) for place in lacking(topics, committed))
    wanted: dict[TopicPartition, Change] = {}
    for tp, one in found.items():
        to = named[tp]
        after = OffsetAndMetadata(one.offset, one.leader_epoch, usable[tp].metadata)
        latest = max(one.offset, logs.latest[to]) if one.skips is not None else logs.latest[to]  # it grows meanwhile
        before = targets.committed[target].get(to)
        wanted[to] = Change(before, after, logs.oldest[to], latest, None, None, one.why, one.skips, one.replays)
    changes = _in_range(target, wanted, policies, troubles, remarks)
    plans = (GroupPlan(target, changes, (), str(targets.state(target))),) if changes else ()
    plan = Plan(cluster_id, plans, Kind.CLONE, made_ms, command, logs.facts_of(tp.topic for tp in changes))
    timed, more = await with_times(admin, plan, timeout_ms=timeout_ms)
    remarks += (*(will_be_made(target) for target in targets.absent if changes), *targets.remarks([target]), *more)
    return Made(timed, tuple(troubles), tuple(remarks))


def _in_range(
    target: str,
    wanted: Mapping[TopicPartition, Change],
    policies: Policies,
    troubles: list[Trouble],
    remarks: list[str],
) -> dict[TopicPartition, Change]:
    """The changes, as the policies have them where the log doesn't hold the offset."""
    changes: dict[TopicPartition, Change] = {}
    for place, change in wanted.items():
        fitted = _fitted(change)
        if fitted == change or policies.if_out_of_range is Otherwise.CLAMP:
            changes[place] = fitted
        elif policies.if_out_of_range is Otherwise.FAIL:
            troubles.append(Trouble(target, place, OutOfRange(fitted.why)))
        else:
            remarks.append(f"{target} {place} is skipped: {fitted.why}")
    return changes


def _chosen(
    translated: Mapping[TopicPartition, Facts | Found],
    failed: dict[TopicPartition, Failure],
    named: Mapping[TopicPartition, TopicPartition],
    policies: Policies,
    remarks: list[str],
) -> dict[TopicPartition, Found]:
    """The target offsets, by the policies where no record gives them."""
    found: dict[TopicPartition, Found] = {}
    for tp, one in translated.items():
        if isinstance(one, Found) or not is_to_come(one) or policies.if_no_record is Otherwise.END:
            found[tp] = translate(one) if isinstance(one, Facts) else one
            continue
        text = f"there is no record from {utc_text(one.record.timestamp)} on yet"
        if policies.if_no_record is Otherwise.FAIL:
            failed[tp] = NoSuchTime(text)
        else:
            remarks.append(f"{named[tp]} is skipped: {text}")
    if policies.if_no_record is not Otherwise.END:
        for tp, why in list(failed.items()):
            if isinstance(why, TimeUnknown) and policies.if_no_record is Otherwise.FAIL:
                failed[tp] = NoSuchTime(str(why))
            elif isinstance(why, TimeUnknown):
                remarks.append(f"{named[tp]} is skipped: {why}")
                del failed[tp]
    return found


async def _is_here(source: Source, cluster_id: str | None, timeout_ms: int | None) -> bool:
    if source.admin is None:
        return True
    return cluster_id is not None and cluster_id == await cluster_id_of(source.admin, timeout_ms=timeout_ms)


def _remarks(groups: Groups, source: Source, *, has_translation: bool) -> list[str]:
    """Remarks about the source group and its cluster."""
    remarks = []
    if source.admin is not None and not has_translation:
        how = "as they are" if not source.topic_prefix else "by time, to other topics"
        remarks.append(f"both groups are in the same cluster: offsets are copied {how}")
    if groups.state(source.group_id) not in INACTIVE:
        remarks.append(f"{source.group_id} has members: what they commit from now on is not in the plan")
    return remarks


def _unusable(target: str, places: Iterable[TopicPartition], logs: Logs) -> list[Trouble]:
    """What the target's cluster lacks: whole topics once, and single partitions."""
    troubles: dict[TopicPartition | str, Failure] = {}
    for place in places:
        if place.topic in logs.topics.failed:
            troubles[place.topic] = logs.topics.failed[place.topic]
        elif (why := logs.why_not(place)) is not None:
            troubles[place] = why
    return [Trouble(target, place, why) for place, why in troubles.items()]


def _fitted(change: Change) -> Change:
    """The change, clamped to the nearer end of the log if the offset is outside of it; ``why`` then has the reason."""
    fitted = change.clamped
    if fitted == change:
        return change
    assert change.after is not None
    is_below = change.oldest is not None and change.after.offset < change.oldest
    end = "below the log start" if is_below else "above the log end"
    return fitted._replace(why=f"{change.why}; {change.after.offset} is {end}, that instead")


async def _translated(
    source: Admin,
    target: Admin,
    commits: Mapping[TopicPartition, OffsetAndMetadata],
    named: Mapping[TopicPartition, TopicPartition],
    logs: Logs,
    topics: Topics,
    timeout_ms: int | None,
) -> tuple[dict[TopicPartition, Facts | Found], dict[TopicPartition, Failure]]:
    """The facts about the source's partitions in both clusters, and the failures of others.

    The target's ends were measured before the source's: records produced meanwhile are read, and not skipped.
    """
    theirs = await look_at_logs(source, commits, timeout_ms=timeout_ms)
    failed = {**_of_other_counts(commits, named, theirs, logs, topics), **theirs.failed}
    known = [tp for tp in commits if tp not in failed]
    here = {tp: Ends(theirs.oldest[tp], theirs.latest[tp]) for tp in known}
    there = {tp: Ends(logs.oldest[named[tp]], logs.latest[named[tp]]) for tp in known}
    offsets = {tp: commits[tp].offset for tp in known}
    found: dict[TopicPartition, Facts | Found] = {}
    for tp in known:
        if here[tp].oldest == here[tp].latest:
            _of_an_empty_log(tp, offsets[tp], here[tp], there[tp], found, failed)
    full = {tp: offsets[tp] for tp in known if tp not in found and tp not in failed}
    records, why_not = await _records(source, full, here, timeout_ms)
    failed |= why_not
    looked_up, why_not = await _looked_up(source, target, records, named, timeout_ms)
    failed |= why_not
    facts: dict[TopicPartition, Facts] = {}
    for tp, (ours, others, is_append_time) in looked_up.items():
        record, is_all_read, leaves_out = records[tp]
        facts[tp] = Facts(
            offsets[tp], here[tp], there[tp], record, is_all_read, ours, others, is_append_time, leaves_out=leaves_out
        )
    await _compare(source, target, facts, named, timeout_ms)
    return {**found, **facts}, failed


def _of_other_counts(
    places: Iterable[TopicPartition],
    named: Mapping[TopicPartition, TopicPartition],
    theirs: Logs,
    logs: Logs,
    topics: Topics,
) -> dict[TopicPartition, Failure]:
    """The partitions of topics that have more or fewer of them in the target, unless they are named one by one."""
    failed: dict[TopicPartition, Failure] = {}
    for tp in places:
        here, there = len(theirs.existing(tp.topic)), len(logs.existing(named[tp].topic))
        if here and here != there and tp not in topics.partitions:
            failed[tp] = PartitionsDiffer(tp.topic, here, there)
    return failed


def _of_an_empty_log(
    place: TopicPartition,
    committed: int,
    here: Ends,
    there: Ends,
    found: dict[TopicPartition, Facts | Found],
    failed: dict[TopicPartition, Failure],
) -> None:
    """There is no record with a time to look up."""
    if there.oldest == there.latest and committed >= here.latest:
        found[place] = Found(there.latest, "all is read, and both logs are empty: the end of the log", 0, 0)
    elif here.latest == 0:
        found[place] = Found(there.oldest, "the source has never had a record: the start of the log", 0, 0)
    else:
        failed[place] = TimeUnknown(f"the source's log is empty up to its end at offset {here.latest}")


class _Anchor(NamedTuple):
    """The first record that the group has not read, or the last that it has where ``is_all_read``."""

    record: FirstRecord
    is_all_read: bool
    leaves_out: bool = False


async def _records(
    source: Admin, offsets: Mapping[TopicPartition, int], here: Mapping[TopicPartition, Ends], timeout_ms: int | None
) -> tuple[dict[TopicPartition, _Anchor], dict[TopicPartition, Failure]]:
    """Whose times tell where the group is."""
    inside = {tp: max(offset, here[tp].oldest) for tp, offset in offsets.items() if offset < here[tp].latest}
    read = await source.first_records([Position(*tp, offset) for tp, offset in inside.items()], timeout_ms=timeout_ms)
    failed: dict[TopicPartition, Failure] = {_place(at): _unread(at, why) for at, why in read.failed.items()}
    found = {_place(at): _Anchor(record, False) for at, record in read.done.items() if record is not None}
    ends = {
        Position(*tp, min(offset, here[tp].latest)): here[tp].oldest
        for tp, offset in offsets.items()
        if tp not in found and tp not in failed
    }
    last = await last_records(source, ends, timeout_ms=timeout_ms)
    found |= {_place(at): _Anchor(record, True) for at, record in last.done.items() if record is not None}
    failed |= {_place(at): _unread(at, why) for at, why in last.failed.items()}
    await _leave_out_aborted(source, found, inside, here, timeout_ms)
    for tp, (record, *_) in list(found.items()):
        if record.timestamp < 0:
            failed[tp] = TimeUnknown(f"the record at offset {record.offset} of the source has no timestamp")
            del found[tp]
    for at, last_one in last.done.items():
        if last_one is None:
            failed[_place(at)] = TimeUnknown("the end of the source's log has no record, only markers of transactions")
    return found, failed


async def _leave_out_aborted(
    source: Admin,
    found: dict[TopicPartition, _Anchor],
    inside: Mapping[TopicPartition, int],
    here: Mapping[TopicPartition, Ends],
    timeout_ms: int | None,
) -> None:
    """Put committed records in place of aborted ones, which copies of committed records don't have."""
    some = {tp: anchor for tp, anchor in found.items() if anchor.record.is_transactional}
    begins = {tp: anchor.record.offset for tp, anchor in some.items() if not anchor.is_all_read}
    following = await committed_from(source, begins, timeout_ms=timeout_ms)
    for tp, record in following.items():
        if record is not None:
            found[tp] = _Anchor(record, False, leaves_out=record.offset > begins[tp])
    ends = {tp: (here[tp].oldest, anchor.record.offset + 1) for tp, anchor in some.items() if anchor.is_all_read}
    ends |= {tp: (here[tp].oldest, inside[tp]) for tp, record in following.items() if record is None}
    before = await committed_before(source, ends, timeout_ms=timeout_ms)
    found.update((tp, _Anchor(record, True)) for tp, record in before.items())


async def _looked_up(
    source: Admin,
    target: Admin,
    anchors: Mapping[TopicPartition, _Anchor],
    named: Mapping[TopicPartition, TopicPartition],
    timeout_ms: int | None,
) -> tuple[dict[TopicPartition, tuple[Lookups, Lookups, bool]], dict[TopicPartition, Failure]]:
    """Of both clusters the first records from the times on, and after them; and whether the target stamps them."""
    times = {tp: anchor.record.timestamp for tp, anchor in anchors.items()}
    asked = [
        first_since(
            admin, {names[tp]: time_ms + later for tp, time_ms in times.items()}, skips_aborted=True,
            timeout_ms=timeout_ms,
        )
        for admin, names in ((source, {tp: tp for tp in times}), (target, named))
        for later in (0, 1)
    ]  # fmt: skip
    at_here, after_here, at_there, after_there = await asyncio.gather(*asked)
    found: dict[TopicPartition, tuple[Lookups, Lookups, bool]] = {}
    failed: dict[TopicPartition, Failure] = {}
    for tp, time_ms in times.items():
        to = named[tp]
        why = at_here.failed.get(tp) or after_here.failed.get(tp) or at_there.failed.get(to)
        why = why or after_there.failed.get(to)
        if why is not None:
            failed[tp] = why
            continue
        at, there, later = at_here.done[tp], at_there.done[to], after_there.done[to]
        first = at.at._replace(timestamp=time_ms) if at.doubt else at.at  # from there on is the record itself
        ours = Lookups(first, after_here.done[tp].at)
        found[tp] = (ours, Lookups(there.at, later.at, there.doubt or later.doubt), there.is_append_time)
    return found, failed


async def _compare(
    source: Admin,
    target: Admin,
    facts: dict[TopicPartition, Facts],
    named: Mapping[TopicPartition, TopicPartition],
    timeout_ms: int | None,
) -> None:
    """Look at what the lookups led to: records of other times; how far the target is; and what lies there."""
    ends = {named[tp]: (one.target.oldest, one.target.latest) for tp, one in facts.items() if one.there.at.offset < 0}
    last = await _last_of(target, ends, timeout_ms)
    times = {tp: last[named[tp]].timestamp for tp in facts if named[tp] in last}
    from_last = {named[tp]: time_ms for tp, time_ms in times.items()}
    first = await first_since(target, from_last, skips_aborted=True, timeout_ms=timeout_ms)
    times |= {
        tp: one.there.at.timestamp
        for tp, one in facts.items()
        if one.there.at.offset >= 0 and one.there.at.timestamp != one.here.at.timestamp
    }
    known = {tp: time_ms for tp, time_ms in times.items() if time_ms >= 0}
    back = await first_since(source, known, skips_aborted=True, timeout_ms=timeout_ms)
    for tp, since in back.done.items():
        if facts[tp].there.at.offset < 0:
            facts[tp] = facts[tp]._replace(last=since.at)
        elif not since.doubt:
            facts[tp] = facts[tp]._replace(counterpart=since.at)
    ours = {tp: _ours(one) for tp, one in facts.items()}
    theirs = {named[tp]: _theirs(one, first.done.get(named[tp])) for tp, one in facts.items()}
    in_source, in_target = await asyncio.gather(_parts(source, ours, timeout_ms), _parts(target, theirs, timeout_ms))
    for tp, one in facts.items():
        facts[tp] = one._replace(ours=in_source.get(tp), theirs=in_target.get(named[tp]))


async def _last_of(
    target: Admin, ends: Mapping[TopicPartition, tuple[int, int]], timeout_ms: int | None
) -> dict[TopicPartition, FirstRecord]:
    """The last records of the target's logs that were committed, or are in no transaction; those that can be found."""
    oldest = {Position(*place, latest): begin for place, (begin, latest) in ends.items()}
    last = await last_records(target, oldest, timeout_ms=timeout_ms)
    found = {_place(at): record for at, record in last.done.items() if record is not None}
    some = {place: ends[place] for place, record in found.items() if record.is_transactional}
    committed = await committed_before(target, some, timeout_ms=timeout_ms)
    return {place: record for place, record in found.items() if place not in some} | committed


def _ours(facts: Facts) -> tuple[int, int]:
    """What of the source's log tells how many records are skipped or read again."""
    here, record, end = facts.here, facts.record, facts.source.latest
    if facts.there.at.offset < 0:
        return (facts.source.oldest if facts.last is None else max(0, facts.last.offset)), end
    after = here.after.offset if here.after.offset >= 0 and not facts.is_all_read else end
    if facts.there.at.timestamp == here.at.timestamp:
        return here.at.offset, max(after, record.offset)
    back = facts.counterpart.offset
    return (here.at.offset, end) if facts.is_all_read else (record.offset, back if back >= record.offset else end)


def _theirs(facts: Facts, first: Since | None) -> tuple[int, int]:
    """The same of the target's. ``first``: from the time of its last record on."""
    end = facts.target.latest
    if facts.there.at.offset < 0:
        return (end, end) if first is None or first.doubt or first.at.offset < 0 else (first.at.offset, end)
    return facts.there.at.offset, facts.there.after.offset if facts.there.after.offset >= 0 else end


async def _parts(
    admin: Admin, ranges: Mapping[TopicPartition, tuple[int, int]], timeout_ms: int | None
) -> dict[TopicPartition, Part]:
    """All records of these parts, where they are not too large."""
    wanted = {place: (begin, end) for place, (begin, end) in ranges.items() if begin < end}
    found = await toured(admin, wanted, timeout_ms)
    return {place: Part(*wanted[place], records) for place, records in found.items()}


def _place(position: Position) -> TopicPartition:
    return TopicPartition(position.topic, position.partition)


def _unread(position: Position, why: Failure) -> Failure:
    """Why a time isn't known; the failure itself says nothing of where."""
    said = f"{type(why).__name__}: {why}".removesuffix(": ")
    if isinstance(why, TopicAuthorizationFailed):
        said = f"READ on topic {position.topic} is missing in its cluster"
    return TimeUnknown(f"the source's record at offset {position.offset} could not be read: {said}")
