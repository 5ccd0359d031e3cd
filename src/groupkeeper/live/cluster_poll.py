"""One poll of a whole cluster. The answer has partial failures; only a failure of the whole cluster is raised."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, GroupListing, GroupState
from groupkeeper.client.errors import CallTimedOut
from groupkeeper.live.errand import Errand
from groupkeeper.live.model import ClusterSnapshot, GroupView, Polls, Scope, TopicView, Wait
from groupkeeper.live.standings import Following, GroupStanding
from groupkeeper.live.waits import SHORT_MS, Waits, longest
from groupkeeper.operations.groups import AnyGroup, unread_topics
from groupkeeper.operations.lag import (
    WHY_BEYOND,
    GroupsLag,
    LagStatus,
    PartitionLag,
    lag_at_an_instant,
    sum_by_group,
    sum_by_topic,
)
from groupkeeper.operations.problems import MissingAcl, Problem, problem_of
from groupkeeper.operations.selection import ALL, Choice, Names, list_selected
from groupkeeper.operations.share_groups import dead_letter_queues
from groupkeeper.operations.topics import HIDDEN, hides_topics
from groupkeeper.operations.watch import WatchedChange
from groupkeeper.protocol.errors import GroupIdNotFound

_MOST_PROBLEMS = 20
"""The most problems of one group: each of a thousand partitions without leaders would have one."""

_GROUPS_AT_A_TIME = 200
_LOOK_S = 1.0


class WantedGroups(NamedTuple):
    """The selection of a collector. `to_last_stable`: lag ends at the last stable offset. `reads_records`: records
    are read for their times. `short_ms`: it does not matter whether records were aborted that have waited for less.
    """

    groups: Choice = ALL
    topics: Choice = ALL
    to_last_stable: bool = False
    reads_records: bool = True
    short_ms: int = SHORT_MS


class Unlisted:
    """Groups that no broker has listed: each was deleted, or its coordinator is not available. Their coordinators are
    asked by name, and the other groups do not wait long for that. A late answer counts until there is a newer one.
    """

    def __init__(self) -> None:
        self._asking: Errand[tuple[int, GroupsLag]] = Errand()
        self._said = GroupsLag({}, {}, {})

    async def look(self, admin: Admin, group_ids: Sequence[str], wanted: WantedGroups, *, within_s: float) -> GroupsLag:
        """The replies that their coordinators have given by now."""
        if not group_ids:
            await self.end()
            return self._said
        lag = partial(lag_at_an_instant, topics=wanted.topics, to_last_stable=wanted.to_last_stable)
        answer = await self._asking.result(lambda: lag(admin, group_ids), within_s)
        descriptions, rows, failed, streams, topic_ids = self._said if answer is None else answer[1]
        late = CallTimedOut("no broker has listed the group, and its coordinator has not replied yet")
        self._said = GroupsLag(
            {each: descriptions[each] for each in group_ids if each in descriptions},
            {each: rows[each] for each in group_ids if each in rows},
            {each: failed[each] for each in group_ids if each in failed},
            streams,
            topic_ids,
        )
        missing = [each for each in group_ids if each not in descriptions and each not in rows and each not in failed]
        return self._said._replace(failed={**self._said.failed, **dict.fromkeys(missing, late)})

    async def end(self) -> None:
        """Stops asking, and forgets the answers."""
        await self._asking.end()
        self._said = GroupsLag({}, {}, {})


class Polled(NamedTuple):
    """A snapshot, and the changes since the previous one."""

    snapshot: ClusterSnapshot
    changes: list[WatchedChange]


async def poll(
    admin: Admin,
    cluster: str,
    wanted: WantedGroups,
    following: Following,
    unlisted: Unlisted,
    waits: Waits,
    polls: Polls,
    *,
    within_s: float,
) -> Polled:
    """Polls the cluster. `within_s`: the time limit of each of the two slow parts, which depend on one broker: asking
    for unlisted groups, and reading times of records.

    Raises the failure if nothing is known: no broker answers, or none lists its groups.
    """
    began = time.monotonic()
    (listed, selection), described = await asyncio.gather(
        list_selected(admin, Names(()), with_share=True, with_streams=True), admin.describe_cluster()
    )
    if selection.failed and len(selection.failed) >= len(described.nodes):
        raise next(iter(selection.failed.values()))
    wanted = wanted._replace(groups=wanted.groups.among({group.group_id for group in listed}))
    listings = {group.group_id: group for group in listed if wanted.groups.matches(group.group_id)}
    others = sorted(filter(wanted.groups.matches, following.group_ids().difference(listings)))
    (measured_ms, lag), late = await asyncio.gather(
        lag_at_an_instant(admin, sorted(listings), topics=wanted.topics, to_last_stable=wanted.to_last_stable),
        unlisted.look(admin, others, wanted, within_s=within_s),
    )
    lag.descriptions.update(late.descriptions)
    lag.rows.update(late.rows)
    lag.failed.update(late.failed)
    lag = lag._replace(streams={**late.streams, **lag.streams}, topic_ids={**late.topic_ids, **lag.topic_ids})
    there = [group_id for group_id in sorted([*listings, *others]) if not _is_gone(lag, group_id)]
    _, may_hide, queues = await asyncio.gather(
        waits.look(admin, lag.rows, measured_ms, lag.topic_ids, within_s=within_s),
        hides_topics(admin) if there and not wanted.topics else asyncio.sleep(0, False),
        dead_letter_queues(admin, lag.descriptions.values()),
    )
    changes = following.follow(lag, there, measured_ms)
    groups: dict[str, GroupView] = {}
    for number, group_id in enumerate(there):
        listing = listings.get(group_id)
        view = _view(group_id, listing, lag, following, waits, measured_ms, may_hide=may_hide)
        groups[group_id] = view._replace(dead_letters=queues.get(group_id))
        if number % _GROUPS_AT_A_TIME == 0:
            await asyncio.sleep(0)  # others in this loop answer requests
    snapshot = ClusterSnapshot(
        cluster,
        measured_ms,
        time.monotonic() - began,
        groups,
        tuple(problem_of(failure, broker=node.id) for node, failure in selection.failed.items()),
        polls,
        len(listed),
        described.cluster_id,
        described.nodes,
        _scope(wanted, listed, lag, is_whole=not selection.failed)._replace(hides_topics=may_hide),
    )
    return Polled(snapshot, changes)


async def take_snapshot(
    admin: Admin, wanted: WantedGroups, say: Callable[[str], None], *, within_s: float, for_s: float = 0
) -> ClusterSnapshot:
    """The groups now, or after following them for `for_s`. Raises the failure if nothing is known of the cluster."""
    following, unlisted, waits = Following(), Unlisted(), Waits(reads_records=wanted.reads_records, short_ms=0)
    until = time.monotonic() + for_s
    try:
        while True:
            say("looking at groups")
            found = await poll(admin, "", wanted, following, unlisted, waits, Polls(), within_s=within_s)
            left_s = until - time.monotonic()
            if left_s <= 0:
                return found.snapshot
            say(f"following groups for {left_s:.0f} s")
            await asyncio.sleep(min(_LOOK_S, left_s))
    finally:
        await unlisted.end()
        await waits.end()


def _scope(wanted: WantedGroups, listed: Sequence[GroupListing], lag: GroupsLag, *, is_whole: bool) -> Scope:
    """The groups that the selection leaves out, and options without a match. `is_whole`: no broker is missing."""
    left_out = tuple(group.group_id for group in listed if not wanted.groups.matches(group.group_id))
    unmatched = _unmatched("--group", wanted.groups, (group.group_id for group in listed)) if is_whole else []
    if wanted.topics and is_whole and not lag.failed:
        topics = {row.topic for rows in lag.rows.values() for row in rows}
        unmatched += _unmatched("--topic", wanted.topics, topics)
    return Scope(left_out, tuple(unmatched), bool(wanted.topics))


def _unmatched(option: str, choice: Choice, names: Iterable[str]) -> list[str]:
    return [f"{option} {text!r}" for text in choice.wanted.without_any(names)] if choice.wanted else []


def unreached(before: ClusterSnapshot, failure: Failure, polls: Polls, seconds: float) -> ClusterSnapshot:
    """The snapshot of a cluster after a failed poll, with the problem. `before`: the one before."""
    last = before if before.is_up else before.last
    return ClusterSnapshot(
        before.cluster, None, seconds, {}, (problem_of(failure),), polls, last=last, replaced=before.replaced
    )


def _is_gone(lag: GroupsLag, group_id: str) -> bool:
    """Whether the group was deleted since it was known."""
    group = lag.descriptions.get(group_id)
    is_dead = group is not None and group.group_state is GroupState.DEAD  # as old brokers tell it
    return (is_dead or isinstance(lag.failed.get(group_id), GroupIdNotFound)) and not lag.rows.get(group_id)


def _view(
    group_id: str,
    listing: GroupListing | None,
    lag: GroupsLag,
    following: Following,
    waits: Waits,
    at_ms: int,
    *,
    may_hide: bool,
) -> GroupView:
    rows = [waits.read(row) for row in lag.rows.get(group_id, [])]
    description = lag.descriptions.get(group_id)
    of_rows = [waits.of(row, at_ms) for row in rows]
    followed = following.of(group_id)
    known = description or listing
    topics = topic_views(group_id, rows, of_rows, description, followed.standing)
    if len(topics) == 1:  # as most have: the sums of its topic are those of the group
        (only,) = topics.values()
        lag_sum, wait_sum = only.lag._replace(topic=None), only.wait
    else:
        lag_sum, wait_sum = sum_by_group(group_id, rows), longest(rows, of_rows)
    return GroupView(
        group_id,
        None if known is None else known.group_type,
        None if known is None else known.group_state,
        description,
        lag.streams.get(group_id),
        rows,
        of_rows,
        topics,
        lag_sum,
        wait_sum,
        followed.rebalances,
        followed.committed,
        followed.progress_ms,
        _problems(group_id, lag.failed.get(group_id), rows, waits, may_hide=may_hide),
        followed.lag_change_per_s,
        followed.trend,
        stood=followed.stood,
        unread=unread_topics(description, frozenset(topics)),
        usual_gap_ms=followed.pauses.usual_ms,
        rebalances_lately=followed.lately,
        is_old=following.is_old(group_id),
    )


def topic_views(
    group_id: str,
    rows: Sequence[PartitionLag],
    waits: Sequence[Wait],
    description: AnyGroup | None,
    standing: Iterable[GroupStanding] = (),
) -> Mapping[str, TopicView]:
    """Sums by topic of a group's rows, which are in order of topics."""
    members = () if description is None else description.members
    assigned = Counter(topic for member in members for topic in {tp.topic for tp in member.assignment})
    since_ms = {each.topic: each.since_ms for each in standing}
    views: dict[str, TopicView] = {}
    start = 0
    for lag in sum_by_topic(group_id, rows):
        assert lag.topic is not None
        end = start + lag.partitions
        wait = longest(rows[start:end], waits[start:end])
        views[lag.topic] = TopicView(lag, wait, assigned[lag.topic], since_ms.get(lag.topic))
        start = end
    return views


_NO_PROBLEM = frozenset(
    {LagStatus.OK, LagStatus.UNCOMMITTED, LagStatus.BELOW_LOG_START, LagStatus.BEYOND_LOG_END, LagStatus.DELETED}
)


def _problems(
    group_id: str, failure: Failure | None, rows: Sequence[PartitionLag], waits: Waits, *, may_hide: bool
) -> tuple[Problem, ...]:
    """The reasons why parts of the group are unknown, each once."""
    found: dict[Problem, None] = {}
    if failure is not None:
        found[problem_of(failure, group=group_id)] = None
    elif may_hide and not rows:
        found[Problem("TOPICS_HIDDEN", HIDDEN, group_id, acl=MissingAcl("DESCRIBE", "TOPIC", None))] = None
    waiting = dict.fromkeys(row.topic for row in rows if row.lag)
    for row in rows:
        if len(found) == _MOST_PROBLEMS:
            break
        if row.status is LagStatus.BEYOND_LOG_END and row.committed is not None:
            text = (
                f"the committed offset, {row.committed.offset}, is past the end of the log, {row.log_end_offset}: "
                f"{WHY_BEYOND}"
            )
            found[Problem(row.status.name, text, group_id, row.topic, row.partition)] = None
        if row.failure is not None and row.status not in _NO_PROBLEM:
            # A missing right concerns the whole topic, not the partition.
            partition = None if row.status is LagStatus.NOT_AUTHORIZED else row.partition
            found[problem_of(row.failure, group=group_id, topic=row.topic, partition=partition)] = None
    for topic, deed, refusal in waits.refusals(waiting):
        found[problem_of(refusal, deed, group=group_id, topic=topic)] = None
    return tuple(found)
