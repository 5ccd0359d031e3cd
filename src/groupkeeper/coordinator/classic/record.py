"""A classic group's roster ⇄ its record in the log (key type 2)."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.classic.group import Member, Roster
from groupkeeper.protocol.messages import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from groupkeeper.protocol.offsets_topic import Entry, Tombstone


def group_record(group_id: str, roster: Roster) -> Entry:
    """The record that makes `roster` durable.

    Only each member's metadata for the selected protocol is stored: its other protocols are lost by a restart.
    """
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(roster.protocol_name),
            assignment=member.assignment,
        )
        for member in roster.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=roster.protocol_type or "",
        generation=roster.generation,
        protocol=roster.protocol_name,
        leader=roster.leader_id,
        current_state_timestamp=-1 if roster.state_since_ms is None else roster.state_since_ms,
        members=members,
    )
    return Entry(GroupMetadataKey(group_id), value)


def group_tombstone(group_id: str) -> Tombstone:
    """The record that removes a classic or simple group."""
    return Tombstone(GroupMetadataKey(group_id))


def read_roster(value: GroupMetadataValue) -> Roster:
    """The roster in a group record."""
    roster = Roster(
        protocol_type=value.protocol_type or None,
        generation=value.generation,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_since_ms=None if value.current_state_timestamp == -1 else value.current_state_timestamp,
    ).with_members(_read_member(stored, value.protocol or "") for stored in value.members)
    return replace(roster, subscribed_topics=roster.find_subscribed_topics())


def _read_member(stored: MemberMetadata, protocol_name: str) -> Member:
    rebalance_timeout_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
    return Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout,
        protocols=((protocol_name, stored.subscription),),
        assignment=stored.assignment,
    )
