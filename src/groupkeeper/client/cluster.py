"""The brokers of a cluster: finds them, and gives access to any broker, a certain one, or the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeVar

from groupkeeper.client import errors
from groupkeeper.client.addresses import Address
from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.peer import Peer, Request
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.client.topology import Node
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.primitives import RootMessage

A = TypeVar("A", bound=RootMessage)

_HEAD_START_S = 0.5
"""How long one bootstrap server may take to answer before the next is tried beside it."""


class Cluster:
    """Cached metadata of a cluster, and the connections to its brokers.

    `leaders` maps (topic, partition) to the leader's node id, `coordinators` group ids and
    `transaction_coordinators` transactional ids to the coordinator's; `classic_groups` has the groups listed as
    classic. All are caches and may be stale; the broker then replies with an error, and the entry is looked up again.
    """

    def __init__(self, bootstrap: list[Address], settings: Settings, security: Security) -> None:
        self.settings = settings
        self.nodes: dict[int, Node] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.leaders: dict[tuple[str, int], int] = {}
        self.coordinators: dict[str, int] = {}
        self.transaction_coordinators: dict[str, int] = {}
        self.classic_groups: set[str] = set()
        self._security = security
        self.principal = security.principal
        self._bootstrap = [Peer(address, settings, security) for address in bootstrap]
        self._peers: dict[int, Peer] = {}
        self._retired: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def deadline(self, name: str, timeout_ms: int | None) -> Deadline:
        """The deadline of a call that starts now; None: the default timeout."""
        if self._is_closed:
            raise errors.ClientClosed(f"{name}: the client was closed")
        if isinstance(timeout_ms, str):
            raise errors.IllegalArgument(f"timeout_ms is a number of milliseconds, not {timeout_ms!r}")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        elif not self._is_at_home():
            raise errors.IllegalArgument(
                f"{name}: this client belongs to another event loop: make one in each loop, also in each asyncio.run"
            )
        return Deadline(name, self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def backoff(self) -> Backoff:
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)

    async def connect(self, deadline: Deadline) -> None:
        """Connect to the first bootstrap server that answers; try all of them again until the deadline.

        Raises at once if no name resolves, no server is a Kafka broker, or authentication failed.
        """
        backoff = self.backoff()
        last: errors.ClientError | None = None
        while True:
            failures = await self._race(deadline)
            if not failures:
                return
            refused = [each for each in failures if isinstance(each, errors.AuthenticationFailed)]
            if refused:
                raise refused[0]
            if all(isinstance(each, errors.UnresolvableName | errors.UnexpectedResponse) for each in failures):
                raise _summary(failures)
            if last is None or not deadline.has_passed:
                last = _summary(failures)
            try:
                await backoff.pause(deadline)
            except errors.CallTimedOut:
                raise last from None

    def _is_at_home(self) -> bool:
        """Whether the running event loop is that of the connections: no other loop can use them."""
        return self._loop is asyncio.get_running_loop()

    async def close(self) -> None:
        """Drop every connection and wait until the sockets are gone."""
        self._is_closed = True
        if self._loop is not None and not self._is_at_home():
            return
        for peer in (*self._bootstrap, *self._peers.values()):
            await peer.close()
        await asyncio.gather(*self._retired, return_exceptions=True)

    def peer(self, node: Node) -> Peer:
        """The peer of a node; closes the old connections when the node has moved to another address."""
        address = Address(node.host, node.port)
        self.nodes[node.id] = node
        known = self._peers.get(node.id)
        if known is not None and known.address == address:
            known.node = node
            return known
        peer = next((each for each in self._bootstrap if each.address == address), None)
        peer = peer or Peer(address, self.settings, self._security, is_advertised=True)
        peer.node = node
        self._peers[node.id] = peer
        if known is not None and known not in self._bootstrap:
            moved = errors.ConnectionFailed(f"{known.address}: the broker has moved to {address}")  # calls then retry
            retired = asyncio.create_task(known.close(moved))
            self._retired.add(retired)
            retired.add_done_callback(self._retired.discard)
        return peer

    def peer_by_id(self, node_id: int) -> Peer | None:
        """The peer of a node id, None when no such broker is known."""
        node = self.nodes.get(node_id)
        return None if node is None else self.peer(node)

    async def ask_any(self, answer_type: type[A], request: Request, deadline: Deadline) -> A:
        """Send a request to any broker; to another one after a failure, until the deadline. Raises as `Peer.ask`."""
        backoff = self.backoff()
        last: errors.ClientError | None = None
        while True:
            peer = self._best_peer()
            try:
                return await peer.ask(answer_type, request, deadline)
            except (errors.ConnectionFailed, errors.CallTimedOut) as error:
                if last is None or not deadline.has_passed:
                    last = error
                await backoff.pause(deadline, last)

    async def refresh(self, deadline: Deadline) -> m.MetadataResponse:
        """Refresh the brokers and the controller."""
        return await self.metadata((), deadline)

    async def metadata(
        self, topics: Iterable[str] | None, deadline: Deadline, *, include_authorized_operations: bool = False
    ) -> m.MetadataResponse:
        """Metadata of topics by name, None for all; never creates a topic. Brokers and leaders are cached.

        Raises the error of the whole response; topics have their own.
        """
        names = None if topics is None else list(topics)

        def build(version: int) -> m.MetadataRequest:
            if version == 0:
                # Empty means all; no topics cannot be requested.
                wanted: list[m.MetadataRequestTopic] | None = []
            elif names is None or (names and version < 4):
                # Before version 4 a request for a topic may create it: request all instead.
                wanted = None
            else:
                wanted = [m.MetadataRequestTopic(name=name) for name in names]
            with_operations = include_authorized_operations and version >= 8
            return m.MetadataRequest(
                topics=wanted,
                allow_auto_topic_creation=version < 4,
                include_topic_authorized_operations=with_operations,
            )

        response = await self.ask_any(m.MetadataResponse, build, deadline)
        if response.error_code:
            raise error_for(response.error_code)
        self._remember(response)
        return response

    def _remember(self, response: m.MetadataResponse) -> None:
        if response.brokers:
            self.nodes = {
                each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
            }
            for node in self.nodes.values():
                self.peer(node)
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        for topic in response.topics:
            if topic.name is not None:
                for partition in topic.partitions:
                    self.leaders[topic.name, partition.partition_index] = partition.leader_id

    def _best_peer(self) -> Peer:
        known = [self._peers[node_id] for node_id in self.nodes if node_id in self._peers]
        return min((*known, *self._bootstrap), key=lambda peer: (peer.failures, not peer.is_open))

    async def _race(self, deadline: Deadline) -> list[errors.ClientError]:
        """Connect to a bootstrap server, also to the next after each head start. Returns the failures if all failed,
        else [].
        """
        failures: list[errors.ClientError] = []
        running: set[asyncio.Task[None]] = set()
        waiting = list(self._bootstrap)
        try:
            while waiting or running:
                if waiting:
                    running.add(asyncio.create_task(waiting.pop(0).open(deadline)))
                head_start_s = _HEAD_START_S if waiting else None
                done, running = await asyncio.wait(running, timeout=head_start_s, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = task.exception()
                    if error is None:
                        return []
                    if not isinstance(error, errors.ClientError):
                        raise error
                    failures.append(error)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return failures


def _summary(failures: list[errors.ClientError]) -> errors.ClientError:
    if len(failures) == 1:
        return failures[0]
    kinds = {type(failure) for failure in failures}
    kind = kinds.pop() if len(kinds) == 1 else errors.ConnectionFailed
    return kind("no bootstrap server can be used: " + "; ".join(str(failure) for failure in failures))
