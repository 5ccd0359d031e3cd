"""Checks of heartbeats that apply to all group types with member epochs, and the loop that describes groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from groupkeeper.coordinator.epochs.group import LEFT_STATICALLY_EPOCH, EpochMember, G, M
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.refusals import D
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol import errors


def check_epoch(
    group_type: GroupType, member: EpochMember, received: int, lost_the_answer: Callable[[], bool], detail: str = ""
) -> None:
    """Checks a member's epoch. The previous epoch is valid too, because the member may have missed the latest response.
    Raises `FencedMemberEpoch`.
    """
    known = member.member_epoch
    if received in (0, known):
        return
    is_greater = received > known
    if not is_greater and received == member.previous_member_epoch and lost_the_answer():
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


def check_holder(holder: M | None, member_id: str, instance_id: str) -> M:
    """The static member of an instance id, which must be this member. Raises `UnknownMemberId`, `FencedInstanceId`."""
    if holder is None:
        raise errors.UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise errors.FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        )
    return holder


def check_released(holder: EpochMember, member_id: str, instance_id: str) -> None:
    """A static member can be replaced only after it has left for a while. Raises `UnreleasedInstanceId`."""
    if holder.member_epoch != LEFT_STATICALLY_EPOCH:
        raise errors.UnreleasedInstanceId(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member."
        )


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
