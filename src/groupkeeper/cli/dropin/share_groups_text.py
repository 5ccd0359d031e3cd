"""The output of kafka-share-groups, from typed values. Texts have their line breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupkeeper.cli.dropin.groups_text import assigned, coordinator_cell, known, row, widest
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
    epochs = [13] if verbose else []
    columns = [widest(15, [group_id]), widest(15, {tp.topic for tp in found}), 10, *epochs, 13, 0]
    header = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET", "LAG"]
    rows = [header]
    for tp in sorted(found, key=lambda tp: (sort_key(tp.topic), tp.partition)):
        offset = found[tp]
        start, epoch, lag = (None, None, None) if offset is None else offset
        values = [epoch, start, lag] if verbose else [start, lag]
        rows.append([group_id, tp.topic, str(tp.partition), *map(known, values)])
    return _table(rows, columns)


def members(group: ShareGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --members."""
    in_order = sorted(group.members, key=lambda member: sort_key(member.member_id))
    columns = [
        widest(15, [group.group_id]),
        widest(15, (member.member_id for member in in_order)),
        widest(15, (member.host for member in in_order)),
        widest(15, (member.client_id for member in in_order)),
        12,
        *([13] if verbose else []),
        0,
    ]
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *(["MEMBER-EPOCH"] if verbose else [])]
    rows = [[*header, "ASSIGNMENT"]]
    for member in in_order:
        texts = [group.group_id, member.member_id, member.host, member.client_id]
        texts.append(str(len(set(member.assignment))))
        rows.append([*texts, *([str(member.member_epoch)] if verbose else []), assigned(member.assignment)])
    return _table(rows, columns)


def state(group: ShareGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --state."""
    coordinator = coordinator_cell(group.coordinator)
    columns = [widest(15, [group.group_id]), widest(25, [coordinator]), 15, *([12, 17] if verbose else []), 0]
    epochs = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else []
    header = ["GROUP", "COORDINATOR (ID)", "STATE", *epochs, "#MEMBERS"]
    texts = [group.group_id, coordinator, str(group.group_state)]
    texts += [str(group.group_epoch), str(group.target_assignment_epoch)] if verbose else []
    return _table([header, [*texts, str(len(group.members))]], columns)


def deleted_offsets(outcomes: Mapping[str, str | None]) -> str:
    """The table of --delete-offsets: by topic, why its offsets are still there, or None."""
    columns = [widest(15, outcomes), 0]
    rows = [["TOPIC", "STATUS"]]
    for topic in sorted(outcomes, key=sort_key):
        problem = outcomes[topic]
        rows.append([topic, "Successful" if problem is None else f"Error: {problem}"])
    return _table(rows, columns)


def _table(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> str:
    return "".join("\n" + row(texts, columns) for texts in rows) + "\n"
