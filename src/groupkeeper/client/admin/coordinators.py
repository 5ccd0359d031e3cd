"""Which broker coordinates a group, or a transactional id (FindCoordinator, KIP-699)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from groupkeeper.client.admin.types import Failure, Node
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import UnsupportedBatching
from groupkeeper.client.peer import Peer
from groupkeeper.client.router import COORDINATOR_RETRIES, Ask, Locate, Located, Retries, Routed, V, batched
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m

D = TypeVar("D")
G = TypeVar("G", bound="_Answered")

KEYS_PER_REQUEST = 2000
_RETRIABLE = (14, 15)


class _Answered(Protocol):
    """A group in a response that describes groups."""

    group_id: str
    error_code: int
    error_message: str | None


class CoordinatorKind(NamedTuple):
    """A type of coordinator key: its code in FindCoordinator, its name in Apache's texts, its authorization error."""

    code: int
    name: str
    refusal: type[errors.KafkaError]

    def memory(self, cluster: Cluster) -> dict[str, int]:
        """The cached coordinators, by key."""
        return cluster.coordinators if self.code == 0 else cluster.transaction_coordinators


GROUPS = CoordinatorKind(0, "groupId", errors.GroupAuthorizationFailed)
TRANSACTIONS = CoordinatorKind(1, "transactionalId", errors.TransactionalIdAuthorizationFailed)


def routed(
    cluster: Cluster,
    deadline: Deadline,
    ask: Ask[str, V],
    *,
    chunk: int = 1,
    kind: CoordinatorKind = GROUPS,
    retries: Retries = COORDINATOR_RETRIES,
) -> Routed[str, V]:
    """Makes a call on groups (or transactional ids), each sent to its coordinator."""
    return Routed(cluster, deadline, locating(cluster, kind, deadline), ask, chunk=chunk, retries=retries)


async def of_one_group(
    cluster: Cluster,
    deadline: Deadline,
    group_id: str,
    ask: Callable[[Peer], Awaitable[V | Failure]],
    retries: Retries = COORDINATOR_RETRIES,
) -> V:
    """Sends a call on one group to its coordinator. Raises the group's failure."""

    async def ask_for_it(peer: Peer, keys: list[str]) -> dict[str, V | Failure]:
        return {group_id: await ask(peer)}

    return (await routed(cluster, deadline, ask_for_it, retries=retries).run([group_id])).result(group_id)


def locating(cluster: Cluster, kind: CoordinatorKind, deadline: Deadline) -> Locate[str]:
    """The lookup of coordinators: cached ones first, the others with as few requests as the broker allows."""
    memory = kind.memory(cluster)

    async def locate(group_ids: list[str], is_again: bool) -> Located[str]:
        located: Located[str] = Located()
        known: dict[int | None, list[str]] = {None: []}
        for group_id in group_ids:
            node_id = None if is_again else memory.get(group_id)
            known.setdefault(node_id, []).append(group_id)
        unknown = known.pop(None)
        for node_id, owned in known.items():
            peer = None if node_id is None else cluster.peer_by_id(node_id)
            if peer is None:
                unknown += owned
            else:
                located.by_peer[peer] = owned
        for start in range(0, len(unknown), KEYS_PER_REQUEST):
            await _look_up(cluster, kind, unknown[start : start + KEYS_PER_REQUEST], deadline, located)
        return located

    return locate


def coordinator_at(peer: Peer) -> Node:
    """The node of the coordinator that replied: `cluster.coordinators` may have changed since."""
    assert peer.node is not None, "requests for groups are sent to brokers that were looked up"
    return peer.node


def by_group(groups: Iterable[G], convert: Callable[[G], D]) -> dict[str, D | Failure]:
    """Each group of a response: converted, or its error.

    Kafka 3.9 answers for each partition of the offsets topic that has some of the groups, each time with all groups, as
    not found where they are not: a description counts more than errors.
    """
    found: dict[str, D | Failure] = {}
    for group in groups:
        if not group.error_code:
            found[group.group_id] = convert(group)
        elif group.group_id not in found:
            found[group.group_id] = errors.error_for(group.error_code, group.error_message)
    return found


async def _look_up(
    cluster: Cluster, kind: CoordinatorKind, group_ids: Sequence[str], deadline: Deadline, located: Located[str]
) -> None:
    memory = kind.memory(cluster)

    async def ask(keys: Sequence[str]) -> dict[str, Node | Failure]:
        return await _ask(cluster, kind, keys, deadline)

    for group_id, found in (await batched(group_ids, ask)).items():
        if isinstance(found, Node):
            memory[group_id] = found.id
            located.by_peer.setdefault(cluster.peer(found), []).append(group_id)
        elif isinstance(found, errors.KafkaError) and found.code in _RETRIABLE:
            located.retry[group_id] = found
        else:
            located.failed[group_id] = found


async def _ask(
    cluster: Cluster, kind: CoordinatorKind, group_ids: Sequence[str], deadline: Deadline
) -> dict[str, Node | Failure]:
    def build(version: int) -> m.FindCoordinatorRequest:
        if version >= 4:
            return m.FindCoordinatorRequest(key_type=kind.code, coordinator_keys=group_ids)
        if len(group_ids) > 1:
            raise UnsupportedBatching(
                f"Cannot create a v{version} FindCoordinator request because we require features supported only in "
                "4 or later."
            )
        return m.FindCoordinatorRequest(key=group_ids[0], key_type=kind.code)

    response = await cluster.ask_any(m.FindCoordinatorResponse, build, deadline)
    coordinators = response.coordinators or [
        m.Coordinator(group_id, response.node_id, response.host, response.port, response.error_code)
        for group_id in group_ids
    ]
    return {each.key: _found(cluster, kind, each) for each in coordinators}


def _found(cluster: Cluster, kind: CoordinatorKind, found: m.Coordinator) -> Node | Failure:
    code = found.error_code
    if code == 0:
        known = cluster.nodes.get(found.node_id)
        if known is not None and known.host == found.host and known.port == found.port:
            return known
        return Node(found.node_id, found.host, found.port)
    if code == kind.refusal.code:
        return kind.refusal(
            f"FindCoordinator request for {kind.name} `{found.key}` failed due to authorization failure"
        )
    if code in _RETRIABLE:
        return errors.error_for(code)
    return errors.error_for(code, f"FindCoordinator request for key `{found.key}` failed due to an unexpected error")
