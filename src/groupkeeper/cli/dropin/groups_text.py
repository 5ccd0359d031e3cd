"""The output of kafka-consumer-groups, from typed values. Every function returns text with its line breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from groupkeeper.cli.java.values import described, kafka_name, width
from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    Failure,
    GroupListing,
    GroupState,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol import errors
from groupkeeper.rules.causes import REBALANCING

if TYPE_CHECKING:
    from groupkeeper.operations.delete import DeletedOffsets
    from groupkeeper.operations.describe import GroupOffsets, PartitionTable

MISSING = "-"


def cell(text: str, columns: int) -> str:
    """The text, padded with blanks to `columns` columns."""
    return text.ljust(columns) if text.isascii() else text + " " * (columns - width(text))


def row(texts: Sequence[str], widths: Sequence[int]) -> str:
    """Cells with a blank between them. A width of 0 doesn't pad."""
    return " ".join([cell(text, columns) for text, columns in zip(texts, widths, strict=True)])


class Grows(int):
    """The least width of a column that grows with its texts; other columns keep their width."""


def fitted(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> list[str]:
    """The lines of a table. A width of 0 doesn't pad."""
    texts_by_column = zip(*rows, strict=True) if rows else [()] * len(columns)
    widths = [
        widest(size, texts) if isinstance(size, Grows) else size
        for size, texts in zip(columns, texts_by_column, strict=True)
    ]
    return [row(texts, widths) for texts in rows]


def table(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> str:
    """The lines of a table, with their breaks."""
    return "".join([line + "\n" for line in fitted(rows, columns)])


def widest(least: int, texts: Iterable[str]) -> int:
    """The width of a column that holds all the texts."""
    return max([least, *map(width, texts)])


def known(value: object) -> str:
    """The value, or a dash when there is none."""
    return MISSING if value is None else str(value)


def listing(groups: Sequence[GroupListing], *, types: bool, states: bool) -> str:
    """The table of --list with --type, --state or both."""
    rows = [["GROUP", *["TYPE"] * types, *["STATE"] * states]]
    for group in groups:
        kind, state = group.group_type or GroupState.UNKNOWN, group.group_state or GroupState.UNKNOWN
        rows.append([group.group_id, *[str(kind)] * types, *[str(state)] * states])
    return table(rows, [widest(15, (group.group_id for group in groups)) + 10, *[20] * (types + states)])


def group_states(groups: Sequence[GroupListing]) -> str:
    """The table of --list --state for groups of one type."""
    rows = [(group.group_id, str(group.group_state or GroupState.UNKNOWN)) for group in groups]
    return table([("GROUP", "STATE"), *rows], [Grows(15), 0])


def all_groups(groups: Sequence[GroupListing]) -> str:
    """The table of kafka-groups: all columns are as wide as the longest text of any of them."""
    rows = [(group.group_id, str(group.group_type or ""), group.protocol_type) for group in groups]
    columns = [widest(20, (text for texts in rows for text in texts))] * 3
    header = row(("GROUP", "TYPE", "PROTOCOL"), columns)
    return f"{header}\n" + "".join(f"{row(texts, columns)} \n" for texts in rows)


def note(group_id: str, state: GroupState) -> str:
    """The note about a group's state on standard error; "": none."""
    if state is GroupState.EMPTY:
        return f"\nConsumer group '{group_id}' has no active members.\n"
    if state in REBALANCING:
        return f"\nWarning: Consumer group '{group_id}' is rebalancing.\n"
    return ""


def offsets(group: GroupOffsets, *, verbose: bool) -> str:
    """The table of --describe --offsets, "" without rows."""
    count = len(group.offsets)
    if not count:
        return ""
    group_id = group.description.group_id
    columns = max(15, width(group_id))
    numbers = (group.epochs, group.offsets, group.lags) if verbose else (group.offsets, group.lags)
    step = 1 + len(numbers)
    cells: list[object] = [cell(group_id, columns)] * (count * step)
    cells[step - 1 :: step] = map(known, group.lags) if None in group.lags else group.lags
    for at, column in enumerate(numbers[:-1], 1):
        cells[at::step] = [MISSING if number < 0 else number for number in column] if min(column) < 0 else column
    return _table_of(group.table, verbose) % ("GROUP".ljust(columns), *cells)


_NUMBERS = ("LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
_OWNER = ("CONSUMER-ID", "HOST", "CLIENT-ID")
_NOBODY = (MISSING, MISSING, MISSING)


@lru_cache
def _table_of(table: PartitionTable, verbose: bool) -> str:
    """The format of a group's rows. It is built once for all groups with the same table.

    It takes "GROUP", padded, and then for each row the group id, padded, and the numbers of the row.
    """
    owners = [(member.member_id, member.host, member.client_id) if member else _NOBODY for member in table.members]
    columns = [widest(15, (owner[0] for owner in owners)), widest(15, (owner[1] for owner in owners)), 0]
    topic_columns = widest(15, (topic for topic, _ in table.partitions))

    def line(topic: str, partition: object, numbers: Sequence[str], owner: Sequence[str]) -> str:
        where = f"{cell(topic, topic_columns)} {partition!s:10}".replace("%", "%%")
        return " ".join(["\n%s", where, *numbers[not verbose :], row(owner, columns).replace("%", "%%")])

    lines = [line("TOPIC", "PARTITION", [f"{name:15}" for name in _NUMBERS], _OWNER)]
    for (topic, partition), end, owner in zip(table.partitions, table.ends, owners, strict=True):
        lines.append(line(topic, partition, ("%-15s", "%-15s", f"{known(end):15}", "%-15s"), owner))
    return "".join(lines) + "\n"


def assignment(partitions: Sequence[TopicPartition] | None) -> str:
    """`my_topic:0,1;new_topic:0`, a dash when there is none."""
    return assigned(partitions or ()) or MISSING


def assigned(partitions: Iterable[TopicPartition]) -> str:
    """`my_topic:0,1;new_topic:0`, "" for none."""
    texts = [f"{topic}:" + ",".join(map(str, sorted(numbers))) for topic, numbers in by_topic(partitions).items()]
    return ";".join(sorted(texts))


def members(group: ConsumerGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --members."""
    static = any(member.instance_id for member in group.members)
    upgrades = {member.upgraded for member in group.members}
    migrating = {True, False} <= upgrades
    header = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    if verbose:
        header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        header += ["UPGRADED"] if migrating else []
    rows = [header, *(_member_texts(group, member, static, verbose, migrating) for member in group.members)]
    columns: list[int] = [Grows(15), Grows(15), *([Grows(17)] if static else []), Grows(15), Grows(15)]
    columns.append(15 if verbose else 16)  # the official tool prints a blank after the table that isn't verbose
    if verbose:
        columns += [15, Grows(20), 15, Grows(20), *([0] if migrating else [])]
    return "\n" + table(rows, columns)


def _member_texts(
    group: ConsumerGroupDescription, member: MemberDescription, static: bool, verbose: bool, migrating: bool
) -> list[str]:
    texts = [group.group_id, member.member_id, *([member.instance_id or ""] if static else [])]
    texts += [member.host, member.client_id, str(len(set(member.assignment)))]
    if verbose:
        texts += [known(member.member_epoch), assignment(member.assignment)]
        texts += [known(group.target_assignment_epoch), assignment(member.target_assignment)]
        texts += [known(member.upgraded).lower()] if migrating else []
    return texts


def state(group: ConsumerGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --state."""
    coordinator = coordinator_cell(group.coordinator)
    epochs = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", *epochs, "#MEMBERS"]
    texts = [group.group_id, coordinator, group.partition_assignor or MISSING, str(group.group_state)]
    texts += [known(group.group_epoch), known(group.target_assignment_epoch)] if verbose else []
    texts.append(str(len(group.members)))
    return "\n" + table([header, texts], [Grows(15), Grows(25), 20, 20, *([15, 25] if verbose else []), 0])


def coordinator_cell(node: Node) -> str:
    """`host:port  (id)`."""
    return f"{node.host}:{node.port}  ({node.id})"


def new_offsets(
    plans: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]], columns: Sequence[int] | None = None
) -> str:
    """The table of --reset-offsets, an empty line when there are no groups. `columns`: None: as wide as the texts."""
    rows = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]] if plans else []
    for group_id, plan in plans.items():
        rows += [[group_id, tp.topic, str(tp.partition), str(offset.offset)] for tp, offset in plan.items()]
    return "\n" + table(rows, columns or [widest(15, plans), Grows(15), 10, 0])


def deletion_text(group_id: str, failure: Failure | None) -> str:
    """The first words of --delete-offsets."""
    if failure is None:
        return f"Request succeeded for deleting offsets from group {group_id}.\n"
    if isinstance(
        failure, errors.InvalidGroupId | errors.GroupIdNotFound | errors.GroupAuthorizationFailed | errors.NonEmptyGroup
    ):
        return f"\nError: {failure.text}\n"
    if isinstance(
        failure, errors.GroupSubscribedToTopic | errors.TopicAuthorizationFailed | errors.UnknownTopicOrPartition
    ):
        return "\nError: Encountered some partition-level error, see the follow-up details.\n"
    return f"\nError: Encountered some unknown error: {kafka_name(failure)}\n"


def deleted_offsets(group_id: str, deleted: DeletedOffsets) -> str:
    """The output of --delete-offsets: a text on the whole, then a table of the partitions, and of topics that cannot be
    described (partition −1). Ordered by the text of topic and partition, so that partition 10 comes before 2.
    """
    failures: dict[tuple[str, int], Failure | None] = {(topic, -1): why for topic, why in deleted.topics.items()}
    for tp, why in deleted.partitions.items():
        failures[tp] = why
    rows = [["TOPIC", "PARTITION", "STATUS"]]
    for topic, partition in sorted(failures, key=lambda key: f"{key[0]}{key[1]}"):
        failure = failures[topic, partition]
        status = "Successful" if failure is None else f"Error: {described(failure)}"
        rows.append([topic, MISSING if partition < 0 else str(partition), status])
    return deletion_text(group_id, deleted.failure) + "\n" + table(rows, [Grows(15), 10, 15])


def deleted_groups(
    deleted: Sequence[str], failed: Mapping[str, str], *, kind: str = "consumer", none: str = "", end: str = ""
) -> str:
    """The output of --delete: `failed` has the reasons, `kind` is consumer, share or streams. `none`: the names of no
    groups; `end`: of the sentence after failures.
    """
    names = ", ".join(f"'{group_id}'" for group_id in deleted) or none
    if not failed:
        return f"Deletion of requested {kind} groups ({names}) was successful.\n"
    lines = [f"\nError: Deletion of some {kind} groups failed:\n"]
    lines += [f"* Group '{group_id}' could not be deleted due to: {why}\n" for group_id, why in failed.items()]
    if deleted:
        lines.append(f"\nThese {kind} groups were deleted successfully: {names}{end}\n")
    return "".join(lines)
