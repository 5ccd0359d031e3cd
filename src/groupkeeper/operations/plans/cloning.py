"""Plans that give a group the offsets of another one, in the same cluster or translated from another cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Failure,
    ListedOffset,
    OffsetAndMetadata,
    OffsetSpec,
    Position,
    TopicPartition,
)
from groupkeeper.operations.errors import NoSuchTime, OutOfRange
from groupkeeper.operations.plans.deleting import chosen, lacking, nothing
from groupkeeper.operations.plans.making import Made, Otherwise, Policies, Topics, with_times
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, Trouble
from groupkeeper.operations.plans.recording import cluster_id_of
from groupkeeper.operations.plans.world import Groups, Logs, look_at_groups, look_at_logs, will_be_made
from groupkeeper.operations.reset import INACTIVE
from groupkeeper.operations.times import utc_text
from groupkeeper.protocol.errors import GroupIdNotFound


class Source(NamedTuple):
    """Whose offsets are copied. ``admin`` None: of the same cluster.

    ``topic_prefix``: what replication puts in front of the names of topics in the target cluster.
    """

    group_id: str
    admin: Admin | None = None
    topic_prefix: str = ""


class Found(NamedTuple):
    """Where an offset of the source leads in the target, and why there."""

    offset: int
    why: str
    leader_epoch: int | None = None


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
    offset becomes that of the first record with the time of the source's next record; ``why`` says how exact that is.
    Partitions that the target lacks are troubles. Raises what keeps a cluster from being looked at.
    """
    theirs = source.admin or admin
    cluster_id = await cluster_id_of(admin, timeout_ms=timeout_ms)
    is_here = await _is_here(source, cluster_id, timeout_ms)
    groups = await look_at_groups(theirs, [source.group_id], timeout_ms=timeout_ms)
    targets = await look_at_groups(admin, [target], timeout_ms=timeout_ms)
    in_the_way = {**targets.failed, **groups.failed}
    if groups.absent:
        in_the_way[source.group_id] = GroupIdNotFound(f"Group {source.group_id} not found.")
    if in_the_way:
        troubles = [Trouble(group_id, None, why) for group_id, why in in_the_way.items()]
        return Made(Plan(cluster_id, (), Kind.CLONE), tuple(troubles), (), groups.absent if is_here else ())
    committed = groups.committed[source.group_id]
    places = sorted(chosen(topics, committed))
    named = {tp: TopicPartition(source.topic_prefix + tp.topic, tp.partition) for tp in places}
    logs = await look_at_logs(admin, named.values(), timeout_ms=timeout_ms)
    troubles = _unusable(target, named.values(), logs)
    usable = {tp: committed[tp] for tp in places if named[tp] not in logs.failed}
    remarks = _remarks(groups, source, has_translation=not is_here)
    if is_here and not source.topic_prefix:
        why = f"exactly as {source.group_id} has it"
        found = {tp: Found(commit.offset, why, commit.leader_epoch) for tp, commit in usable.items()}
        failed: Mapping[TopicPartition, Failure] = {}
    else:
        found, failed = await _translated(theirs, admin, usable, named, logs, policies, remarks, timeout_ms)
    troubles += (Trouble(target, named[tp], why) for tp, why in failed.items())
    troubles += (Trouble(source.group_id, place, nothing(place)) for place in lacking(topics, committed))
    changes: dict[TopicPartition, Change] = {}
    for tp, one in found.items():
        to = named[tp]
        after = OffsetAndMetadata(one.offset, one.leader_epoch, usable[tp].metadata)
        change = Change(targets.committed[target].get(to), after, logs.oldest[to], logs.latest[to], why=one.why)
        fitted = _fitted(change)
        if fitted == change or policies.if_out_of_range is Otherwise.CLAMP:
            changes[to] = fitted
        elif policies.if_out_of_range is Otherwise.FAIL:
            troubles.append(Trouble(target, to, OutOfRange(fitted.why)))
        else:
            remarks.append(f"{target} {to} is skipped: {fitted.why}")
    plans = (GroupPlan(target, changes, (), str(targets.state(target))),) if changes else ()
    plan = Plan(cluster_id, plans, Kind.CLONE, made_ms, command, logs.facts_of(tp.topic for tp in changes))
    timed, more = await with_times(admin, plan, timeout_ms=timeout_ms)
    remarks += (*(will_be_made(target) for target in targets.absent if changes), *targets.remarks([target]), *more)
    return Made(timed, tuple(troubles), tuple(remarks))


async def _is_here(source: Source, cluster_id: str | None, timeout_ms: int | None) -> bool:
    if source.admin is None:
        return True
    return cluster_id is not None and cluster_id == await cluster_id_of(source.admin, timeout_ms=timeout_ms)


def _remarks(groups: Groups, source: Source, *, has_translation: bool) -> list[str]:
    """What is to be said of the group that is copied, and of where it is."""
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
    """The change, to the nearer end of the log where that doesn't hold the offset; ``why`` says so then."""
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
    policies: Policies,
    remarks: list[str],
    timeout_ms: int | None,
) -> tuple[dict[TopicPartition, Found], dict[TopicPartition, Failure]]:
    """Offsets of the source's partitions in the target cluster, and why others have none."""
    theirs = await look_at_logs(source, commits, timeout_ms=timeout_ms)
    failed = dict(theirs.failed)
    next_at: dict[TopicPartition, int] = {}  # of the first record that the group has not read, at the end the last read
    for tp, commit in commits.items():
        if tp not in failed and theirs.oldest[tp] < theirs.latest[tp]:
            inside = min(max(commit.offset, theirs.oldest[tp]), theirs.latest[tp])
            next_at[tp] = min(inside, theirs.latest[tp] - 1)
    times = {}
    if next_at:
        positions = {Position(*tp, offset): tp for tp, offset in next_at.items()}
        read = await source.record_timestamps(positions, timeout_ms=timeout_ms)
        failed |= {positions[place]: why for place, why in read.failed.items()}
        times = {positions[place]: ms for place, ms in read.done.items() if ms is not None and ms >= 0}
    is_end = {tp: commits[tp].offset >= theirs.latest[tp] for tp in times}
    wanted = {tp: OffsetSpec.for_timestamp(ms + is_end[tp]) for tp, ms in times.items()}
    first = await source.list_offsets(wanted, timeout_ms=timeout_ms) if wanted else None
    there = (
        await target.list_offsets({named[tp]: spec for tp, spec in wanted.items()}, timeout_ms=timeout_ms)
        if wanted
        else None
    )
    found: dict[TopicPartition, Found] = {}
    for tp in commits:
        if tp in failed:
            continue
        if tp not in times or first is None or there is None:
            text = "the source's log holds no record with a time to go by"
            _without_time(tp, named[tp], text, logs, policies, found, failed, remarks)
            continue
        failure = first.failed.get(tp) or there.failed.get(named[tp])
        if failure is not None:
            failed[tp] = failure
            continue
        answer = there.done[named[tp]]
        if answer.offset < 0 and not is_end[tp]:
            text = f"no record from {utc_text(times[tp])} on is there yet"
            _without_time(tp, named[tp], text, logs, policies, found, failed, remarks)
            continue
        replayed = 0 if is_end[tp] else next_at[tp] - first.done[tp].offset
        lost = max(0, theirs.oldest[tp] - commits[tp].offset)
        found[tp] = _found(answer, times[tp], replayed, lost, is_end[tp], logs.latest[named[tp]])
    return found, failed


def _found(answer: ListedOffset, time_ms: int, replayed: int, lost: int, is_end: bool, latest: int) -> Found:
    """Where a time leads, and how exact that is."""
    text = utc_text(time_ms)
    if is_end:
        if answer.offset < 0:
            return Found(
                latest, f"all is read: the end of the log; exact unless records up to {text} are still to come"
            )
        return Found(
            answer.offset, f"all is read up to {text}: the first record after that; exact but for late records"
        )
    exactness = (
        "exact"
        if replayed <= 0
        else f"up to {replayed} records are read again, as they have the same time or a later one"
    )
    if answer.timestamp != time_ms:
        exactness = f"the target has no record of that time: its next one is of {utc_text(answer.timestamp)}"
    if lost:
        exactness += f"; the source's log has lost the {lost} records before"
    return Found(answer.offset, f"the record of {text}: {exactness}", answer.leader_epoch)


def _without_time(
    place: TopicPartition,
    to: TopicPartition,
    text: str,
    logs: Logs,
    policies: Policies,
    found: dict[TopicPartition, Found],
    failed: dict[TopicPartition, Failure],
    remarks: list[str],
) -> None:
    if policies.if_no_record is Otherwise.FAIL:
        failed[place] = NoSuchTime(text)
    elif policies.if_no_record is Otherwise.SKIP:
        remarks.append(f"{to} is skipped: {text}")
    else:
        found[place] = Found(logs.latest[to], f"{text}: the end of the log")
