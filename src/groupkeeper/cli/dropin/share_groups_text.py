"""The output of kafka-share-groups, from typed values. Texts have their line breaks."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.cli.dropin.groups_text import Grows, assigned, coordinator_cell, known, table
from groupkeeper.cli.java.values import sort_key
from groupkeeper.client.admin.types import GroupState, ShareGroupDescription, SharePartitionOffset, TopicPartition


def missing(group_id: str) -> str:
    """The text about a dead group on standard output."""
    return f"\nError: Share group '{group_id}' does not exist.\n"


def note(group: ShareGroupDescription) -> str:
    """The text about a group without members on standard error; "": none."""
    is_empty = group.group_state is GroupState.EMPTY
    return f"\nShare group '{group.group_id}' has no active members.\n" if is_empty else ""


def offsets(group_id: str, found: Mapping[TopicPartition, SharePartitionOffset | None], *, verbose: bool) -> str:
    """The table of --describe --offsets."""
    if not found:
        return f"\nShare group '{group_id}' has no offset information.\n"
    rows = [["GROUP", "TOPIC", "PARTITION", *["LEADER-EPOCH"] * verbose, "START-OFFSET", "LAG"]]
    for tp in sorted(found, key=lambda tp: (sort_key(tp.topic), tp.partition)):
        offset = found[tp]
        start, epoch, lag = (None, None, None) if offset is None else offset
        values = [epoch, start, lag] if verbose else [start, lag]
        rows.append([group_id, tp.topic, str(tp.partition), *map(known, values)])
    return "\n" + table(rows, [Grows(15), Grows(15), 10, *[13] * verbose, 13, 0])


def members(group: ShareGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --members."""
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *["MEMBER-EPOCH"] * verbose]
    rows = [[*header, "ASSIGNMENT"]]
    for member in sorted(group.members, key=lambda member: sort_key(member.member_id)):
        texts = [group.group_id, member.member_id, member.host, member.client_id]
        texts.append(str(len(set(member.assignment))))
        rows.append([*texts, *[str(member.member_epoch)] * verbose, assigned(member.assignment)])
    return "\n" + table(rows, [*[Grows(15)] * 4, 12, *[13] * verbose, 0])


def state(group: ShareGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --state."""
    coordinator = coordinator_cell(group.coordinator)
    epochs = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else []
    header = ["GROUP", "COORDINATOR (ID)", "STATE", *epochs, "#MEMBERS"]
    texts = [group.group_id, coordinator, str(group.group_state)]
    texts += [str(group.group_epoch), str(group.target_assignment_epoch)] if verbose else []
    columns = [Grows(15), Grows(25), 15, *([12, 17] if verbose else []), 0]
    return "\n" + table([header, [*texts, str(len(group.members))]], columns)


def deleted_offsets(outcomes: Mapping[str, str | None]) -> str:
    """The table of --delete-offsets: by topic, why its offsets are still there, or None."""
    rows = [["TOPIC", "STATUS"]]
    for topic in sorted(outcomes, key=sort_key):
        problem = outcomes[topic]
        rows.append([topic, "Successful" if problem is None else f"Error: {problem}"])
    return "\n" + table(rows, [Grows(15), 0])
