"""Checks that several requests of the classic protocol share."""

from __future__ import annotations

from groupkeeper.coordinator.classic.group import Roster
from groupkeeper.protocol.errors import FencedInstanceId, IllegalGeneration, UnknownMemberId


def check_member(roster: Roster, member_id: str, instance_id: str | None) -> None:
    """Raises `UnknownMemberId` or `FencedInstanceId` unless the group has the member under that instance id."""
    if instance_id is not None:
        owner_id = roster.member_id_by_instance.get(instance_id)
        if owner_id is None:
            raise UnknownMemberId
        if owner_id != member_id:
            raise FencedInstanceId
    if member_id not in roster.members:
        raise UnknownMemberId


def check_generation(roster: Roster, generation: int) -> None:
    """Raises `IllegalGeneration`."""
    if generation != roster.generation:
        raise IllegalGeneration
