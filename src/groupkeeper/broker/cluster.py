"""The nodes of a cluster in one process: they stop and start, and leaders and coordinators move between them.

There is one log of each partition, and one state of each coordinator: what a node is in charge of, placements say. When
a call returns, what it says has happened.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from groupkeeper.broker.coordination.runtime import GroupRuntime
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.coordination.transactions import TransactionRuntime
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.network.front import Front
from groupkeeper.broker.network.listeners import Endpoint
from groupkeeper.broker.node import Node
from groupkeeper.broker.placement.placement import NO_LEADER, Placement
from groupkeeper.broker.shares.sessions import ShareSessions
from groupkeeper.broker.shares.state import ShareStateRuntime
from groupkeeper.protocol.errors import UnknownTopicOrPartition


class Cluster(Node):
    """The part of a `Broker` that has to do with its nodes.

    Attributes:
        fronts: the nodes, by id.
    """

    fronts: dict[int, Front]
    groups: GroupRuntime
    share_states: ShareStateRuntime
    transactions: TransactionRuntime

    _share_sessions: ShareSessions | None

    # ------------------------------------------------------------------ where clients find nodes

    def front(self, node: int) -> Front:
        """A node as its clients see it."""
        return self.fronts[node]

    def endpoint(self, listener: str, node: int | None = None) -> Endpoint:
        """Where clients of a listener reach a node, without one the first."""
        front = self.fronts[next(iter(self.fronts)) if node is None else node]
        return front.endpoint(listener)

    def endpoints(self, listener: str, among: Collection[int] | None = None) -> list[Endpoint]:
        """Where clients of a listener reach the nodes that run, or those among the given ones."""
        running = self.topics.placements.running
        return [
            front.endpoint(listener)
            for node, front in self.fronts.items()
            if node in running and (among is None or node in among)
        ]

    # ------------------------------------------------------------------ nodes

    async def stop_node(self, node: int) -> None:
        """Stops a node in an orderly way: its leaders move first, then its connections are closed and its ports refuse
        clients. A partition without another replica in sync is offline from then on.
        """
        self._require(node, runs=True)
        await self._leave(node)
        await self.fronts[node].go_down()

    async def kill_node(self, node: int) -> None:
        """The same, but its connections break first, and nothing that waits is answered."""
        self._require(node, runs=True)
        await self.fronts[node].go_down()
        await self._leave(node)

    async def start_node(self, node: int) -> None:
        """Starts a stopped node on the same ports. Its replicas are in sync at once; leaders stay where they are, but
        offline partitions have one again.
        """
        self._require(node, runs=False)
        await self.fronts[node].listen()
        self.topics.placements.running.add(node)
        changes = {}
        for log in self.topics.logs():
            at = log.placement
            if node not in at.replicas:
                continue
            isr = [one for one in at.replicas if one == node or one in at.isr]
            if at.leader != NO_LEADER:
                changes[log] = at.with_isr(isr)
            elif node in at.isr or log.config.unclean_leader_election_enable:
                changes[log] = at.led_by(node, log.log_end_offset, isr if node in at.isr else [node])
        await self._change(changes)

    async def _leave(self, node: int) -> None:
        self.topics.placements.running.discard(node)
        changes = {}
        for log in self.topics.logs():
            at = log.placement
            if node not in at.isr:
                continue
            isr = [one for one in at.isr if one != node] or list(at.isr)
            if at.leader != node:
                changes[log] = at.with_isr(isr)
                continue
            leader = self._electable(at.replicas, isr)
            if leader == NO_LEADER and log.config.unclean_leader_election_enable:
                leader = self._electable(at.replicas, at.replicas)
                isr = isr if leader == NO_LEADER else [leader]
            changes[log] = at.led_by(leader, log.log_end_offset, isr)
        await self._change(changes)

    def _electable(self, replicas: Sequence[int], among: Sequence[int]) -> int:
        running = self.topics.placements.running
        return next((one for one in replicas if one in among and one in running), NO_LEADER)

    def _require(self, node: int, *, runs: bool) -> None:
        if len(self.fronts) == 1:
            raise ValueError("this broker is the only one: give brokers=3")
        if node not in self.fronts:
            raise ValueError(f"there is no node {node}: the nodes are {', '.join(map(str, self.fronts))}")
        if (node in self.topics.placements.running) != runs:
            raise ValueError(f"node {node} {'is stopped already' if runs else 'runs already'}")

    # ------------------------------------------------------------------ leaders

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes a running replica that is in sync the leader of a partition. Raises `UnknownTopicOrPartition`,
        ValueError.
        """
        log = self.topics.partition(topic, partition)
        if log is None:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        at = log.placement
        if self._electable([node], at.isr) == NO_LEADER:
            raise ValueError(f"node {node} cannot lead {topic}-{partition}: in sync are {list(at.isr)}")
        if at.leader != node:
            await self._change({log: at.led_by(node, log.log_end_offset, at.isr)})

    async def move_coordinator(self, group_id: str, node: int) -> None:
        """Moves the coordinator of a group: the leader of its partition of `__consumer_offsets`."""
        await self.move_leader(self.groups.topic_name, self.groups.partition_of(group_id), node)

    async def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        """The same for the coordinator of a transactional id."""
        await self.move_leader(self.transactions.topic_name, self.transactions.partition_of(transactional_id), node)

    async def _change(self, changes: Mapping[PartitionLog, Placement]) -> None:
        """Changes placements; coordinators that move are loaded when it returns. Raises `KafkaStorageError`."""
        if not changes:
            return
        moved = [log for log, new in changes.items() if new.leader != log.placement.leader]
        self.topics.placements.change({(log.topic_id, log.index): new for log, new in changes.items()})
        hosts: dict[str, ShardHost[Any]] = {
            host.topic_name: host for host in (self.groups, self.transactions, self.share_states)
        }
        for log in moved:
            log.tell_waiters(None)
            if self._share_sessions is not None:
                self._share_sessions.partitions.drop_partition(log.topic_id, log.index)
            if log.topic in hosts:
                hosts[log.topic].move(log.index)
        for host in hosts.values():
            await host.wait_until_loaded()
