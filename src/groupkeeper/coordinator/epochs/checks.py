"""Checks of requests that apply to all group types with member epochs, and the loop that describes groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from groupkeeper.coordinator.epochs.group import EpochGroup, G, M
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.refusals import D
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import errors


def check_epoch(
    group_type: GroupType, member: M, received: int, lost_the_answer: Callable[[M], bool], detail: str = ""
) -> None:
    """Checks the epoch of a member that does not join. Its previous epoch is valid too, because it may have missed the
    latest response. Raises `FencedMemberEpoch`.
    """
    known = member.member_epoch
    if received == known:
        return
    is_greater = received > known
    if not is_greater and received == member.previous_member_epoch and lost_the_answer(member):
        return
    raise errors.FencedMemberEpoch(
        f"The {group_type.value} group member has a {'greater' if is_greater else 'smaller'} member epoch ({received}) "
        f"than the one known by the group coordinator ({known}){'' if is_greater else detail}. The member must abandon "
        "all its partitions and rejoin."
    )


def check_texts(**texts: str | None) -> None:
    """Raises `InvalidRequest` for an empty text. `texts`: by field name of the request; None: not given."""
    for name, value in texts.items():
        if value is not None and not value.strip():
            raise errors.InvalidRequest(f"{name} can't be empty.")


def unknown_member(member_id: str, group_id: str) -> errors.UnknownMemberId:
    """The error for a request of a member that is not in the group."""
    return errors.UnknownMemberId(f"Member {member_id} is not a member of group {group_id}.")


def known_or_new(state: StateView, kind: type[G], group_id: str, epoch: int) -> G:
    """The group; a new one if the epoch of a heartbeat says that its member joins. Raises `GroupIdNotFound`."""
    if group_id in state.groups:
        return state.require(group_id, kind)
    if epoch != 0:
        raise errors.GroupIdNotFound(f"{kind.group_type.value.capitalize()} group {group_id} not found.")
    return kind(group_id)


def check_size(group: EpochGroup[Any, Any], limit: int, member_id: str, instance_id: str | None = None) -> None:
    """Raises `GroupMaxSizeReached` for a new member of a full group; existing members may stay."""
    if len(group.members) < limit or member_id in group.members or group.static_member(instance_id) is not None:
        return
    raise errors.GroupMaxSizeReached(
        f"The {group.group_type.value} group has reached its maximum capacity of {limit} members."
    )


def require_member(group: EpochGroup[M, Any], member_id: str, instance_id: str | None = None) -> M:
    """The member, which must be the one of the instance id if that is given. Raises `UnknownMemberId`,
    `FencedInstanceId`.
    """
    if instance_id is None:
        if member_id not in group.members:
            raise unknown_member(member_id, group.group_id)
        return group.members[member_id]
    holder = group.static_member(instance_id)
    if holder is None:
        raise errors.UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise errors.FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        )
    return holder


def describe_all(
    state: StateView,
    kind: type[G],
    group_ids: Iterable[str],
    describe: Callable[[G], D],
    described: Callable[[int, str | None, str], D],
) -> list[D]:
    """Describes groups of that type; groups of another type fail, and so do groups that don't exist. `described` is the
    response's class.
    """
    responses, groups = [], state.groups
    for group_id in group_ids:  # without exceptions: there may be very many groups
        group = groups.get(group_id)
        if not group_id:
            responses.append(described(errors.InvalidGroupId.code, None, group_id))
        elif isinstance(group, kind):
            responses.append(describe(group))
        else:
            responses.append(described(errors.GroupIdNotFound.code, state.why_missing(group_id, kind), group_id))
    return responses
