"""The output of kafka-streams-groups, from typed values. Texts have their line breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupkeeper.cli.dropin.groups_text import Grows, fitted, known, table
from groupkeeper.cli.java.releases import release
from groupkeeper.cli.java.values import sort_key
from groupkeeper.client.admin import streams_types
from groupkeeper.client.admin.types import GroupState, TopicPartition
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
    numbers = ["CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET"] if verbose else []
    rows = [["GROUP", "TOPIC", "PARTITION", *numbers, "OFFSET-LAG"]]
    for tp, (commit, end, lag) in found.items():
        offset, epoch, _ = commit or (None, None, None)
        values = [offset, epoch, end, lag] if verbose else [lag]
        rows.append([group_id, tp.topic, str(tp.partition), *map(known, values)])
    return table(rows, [Grows(15), Grows(15), 10, *([15] * 4 if verbose else [0])])


def members(group: streams_types.StreamsGroupDescription, *, verbose: bool) -> str:
    """The table of --describe --members. When verbose, no blank follows the topology's epoch."""
    if not verbose:
        rows = [["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
        for member in group.members:
            assignment = tasks(member.assignment)
            rows.append([group.group_id, member.member_id, member.process_id, member.client_id, assignment])
        return table(rows, [*[Grows(15)] * 4, 0])
    left = [["GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH"]]
    right = [["MEMBER", "MEMBER-PROTOCOL", "MEMBER-EPOCH", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
    for member in group.members:
        left.append([group.group_id, str(group.target_assignment_epoch), known(group.topology_epoch)])
        protocol = "classic" if member.is_classic else "streams"
        assignment = tasks(member.assignment) + tasks(member.target_assignment, "TARGET-")
        texts = [member.member_id, protocol, str(member.member_epoch)]
        right.append([*texts, member.process_id, member.client_id, assignment])
    lefts = fitted(left, [Grows(15), 25, 15])
    rights = fitted(right, [Grows(15), 15, 15, Grows(15), Grows(15), 0])
    return "".join(f"{one}{other}\n" for one, other in zip(lefts, rights, strict=True))


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
    epochs = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    texts = [group.group_id, coordinator, *assignor, str(group.group_state)]
    texts += [str(group.group_epoch), str(group.target_assignment_epoch)] if verbose else []
    header = ["GROUP", "COORDINATOR (ID)", *["ASSIGNOR" for _ in assignor], "STATE", *epochs, "#MEMBERS"]
    columns = [Grows(15), Grows(25), *[Grows(15)] * len(assignor), 25, *([15, 25] if verbose else []), 0]
    return table([header, [*texts, str(len(group.members))]], columns)


_NO_TOPOLOGY = {
    streams_types.TopologyStatus.NOT_STORED: "No topology description is stored for streams group '{}'.",
    streams_types.TopologyStatus.NOT_ASKED: "No topology description is available for streams group '{}' (status: "
    "NOT_REQUESTED).",
}
_FAILED = "The broker failed to fetch the topology description for streams group '{}'. See the broker logs for details."


def topology(group: streams_types.StreamsGroupDescription) -> str:
    """The nodes of the application, or why they aren't there."""
    if group.topology is None:
        return f"\nError: {_NO_TOPOLOGY.get(group.topology_status, _FAILED).format(group.group_id)}\n"
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
