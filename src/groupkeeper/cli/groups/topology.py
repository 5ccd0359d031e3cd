"""`groupkeeper groups describe --view topology`: the nodes of applications of Kafka Streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from groupkeeper.cli.framework.clusters import ClusterSession
from groupkeeper.cli.framework.group_arguments import names_of, said_about, with_suggestions
from groupkeeper.cli.framework.reports import Page, Row
from groupkeeper.client.admin.streams_types import StreamsNode, StreamsTopology, TopologyStatus
from groupkeeper.client.admin.types import Failure, GroupType
from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.operations.lag import in_parts
from groupkeeper.operations.selection import select_groups

TOO_OLD = "the group's brokers are older than Kafka 4.4, and keep no topologies"


async def topology_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """The nodes of the selected streams groups; a note names groups without nodes."""
    options = session.options
    names = names_of(options, "groups")
    types = options.type or ([] if names.exact and not names.patterns else [GroupType.STREAMS])
    selection = await select_groups(session.admin, names, options.state, types, with_streams=True)
    notes: list[str] = []
    for part in in_parts(selection.group_ids):
        described = await session.admin.describe_streams_groups(part, include_topology=True)
        failed: dict[str, Failure] = {
            group_id: UnsupportedVersion(TOO_OLD) if isinstance(failure, UnsupportedVersion) else failure
            for group_id, failure in described.failed.items()
        }
        rows: list[Row] = []
        for group_id, group in sorted(described.done.items()):
            if group.topology is not None:
                rows += node_rows(group_id, group.topology)
            elif group.topology_status is TopologyStatus.FAILED:
                notes.append(f"the broker could not fetch the topology of group {group_id}; its log says why")
            else:
                notes.append(f"no topology of group {group_id} is kept: brokers need a plugin for that")
        yield Page(rows, await with_suggestions(session, failed))
    said = await said_about(session, selection)
    yield said._replace(notes=[*said.notes, *notes])


def node_rows(group_id: str, topology: StreamsTopology) -> Iterable[Row]:
    """A row for each node."""
    for part_id, nodes in topology.subtopologies:
        yield from (_row(group_id, part_id, node) for node in nodes)
    for nodes in topology.global_stores:
        yield from (_row(group_id, None, node) for node in nodes)


def _row(group_id: str, part_id: str | None, node: StreamsNode) -> Row:
    return {
        "group": group_id,
        "subtopology": part_id,
        "node": node.name,
        "kind": node.kind,
        "topics": _listed(node.topics),
        "stores": _listed(node.stores),
        "successors": _listed(node.successors),
    }


def _listed(names: Sequence[str]) -> str | None:
    return ", ".join(sorted(names)) or None
