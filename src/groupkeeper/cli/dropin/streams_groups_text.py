"""The output of kafka-streams-groups, from typed values. Texts have their line breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupkeeper.cli.dropin.groups_text import known, row, widest
from groupkeeper.cli.java.releases import release
from groupkeeper.cli.java.values import sort_key
from groupkeeper.client.admin import streams_types
from groupkeeper.client.admin.types import GroupState, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.streams_groups import PartitionProgress


def note(group: streams_types.StreamsGroupDescription) -> str:
    """The text about a group without members; "": none."""
    if group.group_state is GroupState.DEAD:
        return f"\nError: Streams group '{group.group_id}' does not exist.\n"
    if group.group_state is GroupState.EMPTY:
        return f"\nError: Streams group '{group.group_id}' has no active members.\n"
    return ""


def offsets(group_id: str, found: Mapping[TopicPartition, PartitionProgress], *, verbose: bool) -> str:
    """The table of --describe --offsets."""
    columns = [widest(15, [group_id]), widest(15, {tp.topic for tp in found}), 10, *([15] * 4 if verbose else [0])]
    numbers = ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET"] if verbose else []
    rows = [["GROUP", "TOPIC", "PARTITION", *numbers, "OFFSET-LAG"]]
    for tp, (commit, end, lag) in found.items():
        offset, epoch, _ = commit or (None, None, None)
        values = [offset, epoch, end, lag] if verbose else [lag]
        rows.append([group_id, tp.topic, str(tp.partition), *map(known, values)])
    return _table(rows, columns)


def members(group: streams_types.StreamsGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --members. When verbose, no blank follows the topology's epoch."""
    group_id = [widest(15, [group.group_id])]
    member_id = [widest(15, (member.member_id for member in group.members))]
    process = [
        widest(15, (member.process_id for member in group.members)),
        widest(15, (member.client_id for member in group.members)),
        0,
    ]
    if not verbose:
        rows = [["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
        for member in group.members:
            assignment = tasks(member.assignment)
            rows.append([group.group_id, member.member_id, member.process_id, member.client_id, assignment])
        return _table(rows, [*group_id, *member_id, *process])
    left = [["GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH"]]
    right = [["MEMBER", "MEMBER-PROTOCOL", "MEMBER-EPOCH", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
    for member in group.members:
        left.append([group.group_id, str(group.target_assignment_epoch), known(group.topology_epoch)])
        protocol = "classic" if member.is_classic else "streams"
        assignment = tasks(member.assignment) + tasks(member.target_assignment, "TARGET-")
        texts = [member.member_id, protocol, str(member.member_epoch)]
        right.append([*texts, member.process_id, member.client_id, assignment])
    columns = [*group_id, 25, 15], [*member_id, 15, 15, *process]
    return "".join(row(a, columns[0]) + row(b, columns[1]) + "\n" for a, b in zip(left, right, strict=True))


def tasks(assignment: streams_types.StreamsTasks, prefix: str = "") -> str:
    """`ACTIVE: 0:[0,1]; STANDBY: 1:[2]; `, "" for none."""
    kinds = {"ACTIVE": assignment.active, "STANDBY": assignment.standby, "WARMUP": assignment.warmup}
    return "".join(f"{prefix}{kind}: {_by_subtopology(some)}" for kind, some in kinds.items() if some)


def _by_subtopology(some: Sequence[streams_types.StreamsTask]) -> str:
    numbers: dict[str, list[str]] = {}
    for task in some:
        numbers.setdefault(task.subtopology_id, []).append(str(task.partition))
    return "".join(f"{subtopology}:[{','.join(each)}]; " for subtopology, each in numbers.items())


def state(group: streams_types.StreamsGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --state."""
    coordinator = f"{group.coordinator.host}:{group.coordinator.port} ({group.coordinator.id})"
    assignor = [group.assignor or ""] if release().has_assignor else []
    columns = [widest(15, [group.group_id]), widest(25, [coordinator]), *(widest(15, [each]) for each in assignor)]
    columns += [25, *([15, 25] if verbose else []), 0]
    epochs = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    texts = [group.group_id, coordinator, *assignor, str(group.group_state)]
    texts += [str(group.group_epoch), str(group.target_assignment_epoch)] if verbose else []
    header = ["GROUP", "COORDINATOR (ID)", *["ASSIGNOR" for _ in assignor], "STATE", *epochs, "#MEMBERS"]
    return _table([header, [*texts, str(len(group.members))]], columns)


def topology(group: streams_types.StreamsGroupDescription) -> str:
    """The nodes of the application, or why they aren't there."""
    if group.topology is None:
        if group.topology_status is streams_types.TopologyStatus.NOT_STORED:
            return f"\nError: No topology description is stored for streams group '{group.group_id}'.\n"
        if group.topology_status is streams_types.TopologyStatus.NOT_ASKED:
            return (
                f"\nError: No topology description is available for streams group '{group.group_id}' (status: "
                "NOT_REQUESTED).\n"
            )
        return (
            f"\nError: The broker failed to fetch the topology description for streams group '{group.group_id}'. "
            "See the broker logs for details.\n"
        )
    parts = [(f"Sub-topology: {part_id}", nodes) for part_id, nodes in group.topology.subtopologies]
    for number, nodes in enumerate(group.topology.global_stores, len(parts)):
        parts.append((f"Sub-topology: {number} for global store (will not generate tasks)", nodes))
    texts = [f"   {title}\n" + "".join(_node(node, nodes) for node in nodes) + "\n" for title, nodes in parts]
    return "Topologies:\n" + "".join(texts) + "\n"


def _node(node: streams_types.StreamsNode, others: Sequence[streams_types.StreamsNode]) -> str:
    before = _names(each.name for each in others if node.name in each.successors)
    after = _names(node.successors)
    if node.kind == "source":
        return f"    Source: {node.name} (topics: {_listed(node.topics)})\n      --> {after}\n"
    if node.kind == "sink":
        return f"    Sink: {node.name} (topic: {node.topics[0] if node.topics else 'null'})\n      <-- {before}\n"
    stores = _listed(node.stores)
    return f"    Processor: {node.name} (stores: {stores})\n      --> {after}\n      <-- {before}\n"


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names), key=sort_key)) or "none"


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(sorted(set(names), key=sort_key)) + "]"


def new_offsets(plans: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]) -> str:
    """The table of --reset-offsets, whose columns don't grow; an empty line when there are no groups."""
    rows = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]] if plans else []
    for group_id, plan in plans.items():
        rows += [[group_id, tp.topic, str(tp.partition), str(commit.offset)] for tp, commit in plan.items()]
    return "".join("\n" + row(texts, (30, 30, 10, 15)) for texts in rows) + "\n"


def deleted_groups(deleted: Sequence[str], failed: Mapping[str, str]) -> str:
    """The output of --delete about groups; `failed` has the reasons."""
    names = "'" + "', '".join(deleted) + "'"
    if not failed:
        return f"Deletion of requested streams groups ({names}) was successful.\n"
    lines = ["\nError: Deletion of some streams groups failed:\n"]
    lines += [f"* Group '{group_id}' could not be deleted due to: {why}\n" for group_id, why in failed.items()]
    if deleted:
        lines.append(f"\nThese streams groups were deleted successfully: {names}.\n")
    return "".join(lines)


def deleted_topics(group_ids: Sequence[str], failed: Mapping[str, str]) -> str:
    """The output of --delete about the internal topics of deleted groups."""
    if not failed:
        names = "', '".join(group_ids)
        return f"Deletion of associated internal topics of the streams groups ('{names}') was successful.\n"
    lines = ["Deletion of some associated internal topics failed:\n"]
    lines += [
        f"* Internal topics of the streams group '{group_id}' could not be deleted due to: {why}\n"
        for group_id, why in failed.items()
    ]
    return "".join(lines)


def _table(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> str:
    return "".join(row(texts, columns) + "\n" for texts in rows)
