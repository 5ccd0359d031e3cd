"""Watching groups: the changes from one poll to the next, during a rebalance or a migration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import ConsumerGroupDescription, Failure, MemberDescription, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.groups import AnyGroup, describe_any
from groupkeeper.operations.selection import Names, list_selected
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError

Partitions: TypeAlias = tuple[TopicPartition, ...]

LONGEST_PAUSE_S = 10.0
"""The longest pause between failing polls, unless the interval is longer itself."""

LATE_S = 5.0
"""After how long a poll is late. Its own time limit is longer, as brokers may need it during a failover."""


class What(StrEnum):
    """The kind of a change. The first three, the epochs and `problem` concern the group, the others a member."""

    TYPE = "type"
    STATE = "state"
    ASSIGNOR = "assignor"
    GROUP_EPOCH = "group_epoch"
    TARGET_EPOCH = "target_epoch"
    PRESENT = "member_present"
    JOINED = "member_joined"
    LEFT = "member_left"
    MEMBER_EPOCH = "member_epoch"
    UPGRADED = "upgraded"
    TARGET_ASSIGNMENT = "target_assignment"
    ASSIGNMENT = "assignment"
    PROBLEM = "problem"


class WatchedChange(NamedTuple):
    """A changed value."""

    group_id: str
    what: What
    before: str | int | bool | Partitions | None
    """None: it didn't exist."""
    after: str | int | bool | Partitions | None
    """None: it no longer exists. Of a problem, this is its text."""
    member: MemberDescription | None = None
    """The member concerned, as it is now or was last; None: the change is of the group."""
    is_initial: bool = False
    """True: the first description of the group, its current state and no change."""


class Look(NamedTuple):
    """The changes that a poll found. `failure`: why no group could be described; None: one could, or there is no
    group. `is_late`: no replies yet; another Look follows with the poll's result.
    """

    changes: list[WatchedChange]
    failure: Failure | None = None
    is_late: bool = False


Seen: TypeAlias = AnyGroup | Failure | None
"""The result of a poll for a group: its description, a failure, or None for a missing group."""


async def follow(admin: Admin, names: Names, *, interval_s: float) -> AsyncIterator[Look]:
    """The changes found by each poll, without end: first the state of all groups, later often none.

    Groups that are named exactly are waited for. A failure is a change too, and the next poll retries. Polls begin
    `interval_s` after the end of the previous one, up to LONGEST_PAUSE_S while no group can be described. Raises the
    failure of the first poll as a whole.
    """
    # Groups as they were last described: one that can't be now may still be so.
    groups: dict[str, AnyGroup | None] = {}
    problems: dict[str, str | None] = {}
    unseen: set[str] | None = None  # groups that no poll has described yet
    failure: Failure | None = None
    pause_s = interval_s
    while True:
        poll = asyncio.create_task(_looked(admin, names, groups))
        try:
            if not (await asyncio.wait([poll], timeout=LATE_S))[0]:
                yield Look([], failure, is_late=True)
            seen, failure = await poll
        finally:
            poll.cancel()
        if unseen is None:
            if failure is not None:
                raise failure
            unseen = set(seen)
        found: list[WatchedChange] = []
        # A group that is no longer listed was deleted.
        for group_id in sorted(seen.keys() | groups.keys()):
            now = seen.get(group_id)
            problem = None
            if isinstance(now, KafkaError | ClientError):
                problem, now = str(now), groups.get(group_id)
            if problems.get(group_id) != problem:
                found.append(WatchedChange(group_id, What.PROBLEM, problems.get(group_id), problem))
                problems[group_id] = problem
            differences = changes(group_id, groups.get(group_id), now)
            found += map(_as_found, differences) if group_id in unseen else differences
            groups[group_id] = now
            if problem is None:
                unseen.discard(group_id)
        failure = failure or _failure_of_all(seen)
        yield Look(found, failure)
        pause_s = interval_s if failure is None else max(interval_s, min(2 * pause_s, LONGEST_PAUSE_S))
        await asyncio.sleep(pause_s)


async def _looked(admin: Admin, names: Names, groups: Iterable[str]) -> tuple[Mapping[str, Seen], Failure | None]:
    """The results of a poll, and its failure as a whole, which each of the known `groups` then gets."""
    try:
        return await look(admin, names), None
    except (KafkaError, ClientError) as refused:
        return dict.fromkeys(groups, refused), refused


def _failure_of_all(seen: Mapping[str, Seen]) -> Failure | None:
    """Why no broker described any group, None when one did or there are no groups."""
    failures = [now for now in seen.values() if isinstance(now, ClientError)]
    return failures[0] if failures and len(failures) == len(seen) else None


def _as_found(change: WatchedChange) -> WatchedChange:
    what = What.PRESENT if change.what is What.JOINED else change.what
    return change._replace(what=what, is_initial=True)


async def look(admin: Admin, names: Names) -> Mapping[str, Seen]:
    """The current state of the selected groups."""
    group_ids = set(names.exact)
    if names.patterns or not names:
        listed, selection = await list_selected(admin, names, with_share=True, with_streams=True)
        for failure in selection.failed.values():
            raise failure
        group_ids.update(group.group_id for group in listed)
    described = await describe_any(admin, sorted(group_ids))
    seen: dict[str, Seen] = {**described.done}
    for group_id, failed in described.failed.items():
        seen[group_id] = None if isinstance(failed, GroupIdNotFound) else failed
    return seen


def changes(group_id: str, before: AnyGroup | None, after: AnyGroup | None) -> Iterator[WatchedChange]:
    """The changes of a group; None: the group does not exist. Members are in the order of their ids."""
    old, new = _facts(before), _facts(after)
    for what in old | new:
        if old.get(what) != new.get(what):
            yield WatchedChange(group_id, what, old.get(what), new.get(what))
    gone, here = _members(before), _members(after)
    for member_id in sorted(gone.keys() - here.keys()):
        left = gone[member_id]
        yield WatchedChange(group_id, What.LEFT, tuple(sorted(left.assignment)), None, left)
    for member_id in sorted(here):
        yield from _member_changes(group_id, gone.get(member_id), here[member_id])


def _members(group: AnyGroup | None) -> dict[str, MemberDescription]:
    """Members by their ids; those of share groups in the form of other groups' members."""
    if group is None:
        return {}
    if isinstance(group, ConsumerGroupDescription):
        return {member.member_id: member for member in group.members}
    return {
        one.member_id: MemberDescription(
            one.member_id, None, one.client_id, one.host, one.assignment, member_epoch=one.member_epoch
        )
        for one in group.members
    }


def _facts(group: AnyGroup | None) -> dict[What, str | int | None]:
    if group is None:
        return {}
    return {
        What.TYPE: group.group_type.value,
        What.STATE: group.group_state.value,
        What.ASSIGNOR: group.partition_assignor or None,
        What.GROUP_EPOCH: group.group_epoch,
        What.TARGET_EPOCH: group.target_assignment_epoch,
    }


def _member_changes(
    group_id: str, before: MemberDescription | None, after: MemberDescription
) -> Iterator[WatchedChange]:
    if before is None:
        yield WatchedChange(group_id, What.JOINED, None, tuple(sorted(after.assignment)), after)
        before = after._replace(member_epoch=None, upgraded=None, target_assignment=None)
    pairs: tuple[tuple[What, int | bool | Partitions | None, int | bool | Partitions | None], ...] = (
        (What.MEMBER_EPOCH, before.member_epoch, after.member_epoch),
        (What.UPGRADED, before.upgraded, after.upgraded),
        (What.TARGET_ASSIGNMENT, _sorted(before.target_assignment), _sorted(after.target_assignment)),
        (What.ASSIGNMENT, _sorted(before.assignment), _sorted(after.assignment)),
    )
    for what, old, new in pairs:
        if old != new:
            yield WatchedChange(group_id, what, old, new, after)


def _sorted(partitions: Partitions | None) -> Partitions | None:
    return None if partitions is None else tuple(sorted(partitions))
