"""The nodes of a cluster in one process: they stop and start, and leaders and coordinators move between them.

There is one log of each partition, and one state of each coordinator: what a node is in charge of, placements say. When
a call returns, what it says has happened.
"""

from __future__ import annotations

from asyncio import Future, Lock, TimerHandle, ensure_future, get_running_loop
from collections.abc import Collection, Iterable, Mapping, Sequence
from logging import getLogger
from typing import Any

from groupkeeper.broker.coordination.runtime import GroupRuntime
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.coordination.transactions import TransactionRuntime
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.network.front import Front
from groupkeeper.broker.network.listeners import Endpoint
from groupkeeper.broker.node import Node
from groupkeeper.broker.placement.placement import NO_LEADER, Placement
from groupkeeper.broker.shares.state import ShareStateRuntime
from groupkeeper.protocol.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)

_log = getLogger("groupkeeper.broker")

TYPE_CHECKING = False
if TYPE_CHECKING:  # a broker without share groups starts without them
    from groupkeeper.broker.shares.sessions import ShareSessions


class Cluster(Node):
    """The part of a `Broker` that has to do with its nodes.

    Attributes:
        fronts: the nodes, by id.
    """

    fronts: dict[int, Front]
    _one_at_a_time: Lock
    _moving_since: dict[PartitionLog, float]
    _timer: TimerHandle | None = None
    _task: Future[None] | None = None
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
        async with self._one_at_a_time:
            self._require(node, runs=True)
            await self._leave(node)
            await self.fronts[node].go_down()

    async def kill_node(self, node: int) -> None:
        """The same, but its connections break first, and nothing that waits is answered."""
        async with self._one_at_a_time:
            self._require(node, runs=True)
            await self.fronts[node].go_down()
            await self._leave(node)

    async def start_node(self, node: int) -> None:
        """Starts a stopped node on the same ports. Its replicas are in sync at once; leaders stay where they are, but
        offline partitions have one again.
        """
        async with self._one_at_a_time:
            self._require(node, runs=False)
            await self.fronts[node].listen()
            await self._return(node)

    async def _return(self, node: int) -> None:
        self.topics.placements.running.add(node)
        changes = {}
        for log in self.topics.logs():
            at = log.placement
            if node not in at.replicas:
                continue
            if at.leader == NO_LEADER:
                if node not in at.isr and not log.config.unclean_leader_election_enable:
                    continue
                at = at.led_by(node, log.log_end_offset, [node])
            changes[log] = self._joined(log, at, self.topics.placements.running if at.leader == node else [node])
        await self._change(changes)

    def _joined(self, log: PartitionLog, at: Placement, nodes: Iterable[int] = ()) -> Placement:
        """The placement once these replicas, and those that a reassignment adds, are in sync, if they run and may
        follow. That ends the reassignment.
        """
        running, end = self.topics.placements.running, log.log_end_offset
        held_up = {one for one in at.adding if self._is_throttled(log, one)}
        joining = running.intersection(at.replicas, {*nodes, *at.adding}) - held_up
        at = at.with_isr(sorted(joining.union(at.isr)), end)
        if not at.is_moving or not set(at.adding) <= set(at.isr) or set(at.isr) <= set(at.removing):
            return at
        moved = at.moved(end)
        if at.removing:
            leader = self._electable([moved.leader, *moved.replicas], moved.isr)
            moved = moved.led_by(leader, end, moved.isr)
        return moved

    def _is_throttled(self, log: PartitionLog, node: int) -> bool:
        """Whether a replica that is added has not yet got the log, as fast as it may; then `go_on` runs when it has."""
        named = log.config.follower_replication_throttled_replicas
        rate = self.config.changed.get(str(node), {}).get("follower.replication.throttled.rate")
        if rate is None or {"*", f"{log.index}:{node}"}.isdisjoint(named):
            return False
        loop = get_running_loop()
        left_s = self._moving_since.setdefault(log, loop.time()) + log.size / max(int(rate), 1) - loop.time()
        if left_s > 0 and (self._timer is None or self._timer.when() > loop.time() + left_s):
            self.stop_timer()
            self._timer = loop.call_later(left_s, self._run_on)
        return left_s > 0

    def _run_on(self) -> None:
        self._timer = None
        self._task = ensure_future(self.go_on())

    def stop_timer(self) -> None:
        """No reassignment goes on by itself any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def go_on(self) -> None:
        """Does what waited for other settings: unclean elections, and reassignments that were throttled."""
        changes = {}
        for log in self.topics.logs() if len(self.fronts) > 1 else ():
            at = log.placement
            if at.leader == NO_LEADER and log.config.unclean_leader_election_enable:
                changes[log] = self._with_leader(log, at.isr, is_unclean=True)
            elif at.leader != NO_LEADER and at.adding:
                changes[log] = self._joined(log, at)
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
                changes[log] = at.with_isr(isr, log.log_end_offset)
                continue
            changes[log] = self._with_leader(log, isr, is_unclean=log.config.unclean_leader_election_enable)
        await self._change(changes)

    def _with_leader(self, log: PartitionLog, isr: Sequence[int], *, is_unclean: bool) -> Placement:
        """The placement under the first of these replicas that runs; unclean: if there is none, under any."""
        replicas = log.placement.replicas
        leader = self._electable(replicas, isr)
        if leader == NO_LEADER and is_unclean:
            leader = self._electable(replicas, replicas)
            isr = isr if leader == NO_LEADER else [one for one in replicas if one in self.topics.placements.running]
        return log.placement.led_by(leader, log.log_end_offset, isr)

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
        log = self._log(topic, partition)
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

    async def set_in_sync(self, topic: str, partition: int, nodes: Collection[int]) -> None:
        """Takes replicas out of those in sync, or back. Raises `UnknownTopicOrPartition`, ValueError."""
        log = self._log(topic, partition)
        at, running = log.placement, self.topics.placements.running
        isr = sorted(running.intersection(at.replicas, nodes))
        if len(isr) < len(nodes) or at.leader not in isr:
            raise ValueError(
                f"{sorted(nodes)} cannot be in sync for {topic}-{partition}: give running replicas of "
                f"{list(at.replicas)}, the leader {at.leader} among them"
            )
        await self._change({log: at.with_isr(isr, log.log_end_offset)})

    async def elect_leaders(
        self, logs: Iterable[PartitionLog], *, is_unclean: bool
    ) -> dict[PartitionLog, KafkaError | None]:
        """Lets the first replicas lead if they are in sync; unclean: lets any replica lead where there is no leader.
        Returns what came of it.
        """
        errors: dict[PartitionLog, KafkaError | None] = {}
        changes = {}
        for log in logs:
            at = log.placement
            if at.leader != NO_LEADER if is_unclean else at.leader == at.replicas[0]:
                errors[log] = ElectionNotNeeded()
                continue
            isr = at.isr if is_unclean or at.replicas[0] in at.isr else ()
            new = self._with_leader(log, isr, is_unclean=is_unclean)
            errors[log] = None
            if new.leader == NO_LEADER or (new.leader != at.replicas[0] and not is_unclean):
                errors[log] = EligibleLeadersNotAvailable() if is_unclean else PreferredLeaderNotAvailable()
            else:
                changes[log] = new
        await self._change(changes)
        return errors

    async def reassign(self, targets: Mapping[PartitionLog, Sequence[int]]) -> None:
        """Gives partitions other replicas. That ends once all that are added are in sync: at once if they run."""
        changes = {}
        for log, target in targets.items():
            at = log.placement.towards(target, log.log_end_offset)
            if at.leader != log.placement.leader:
                at = at.led_by(self._electable(at.replicas, at.isr), log.log_end_offset, at.isr)
            changes[log] = at if at.leader == NO_LEADER else self._joined(log, at)
        await self._change(changes)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        log = self.topics.partition(topic, partition)
        if log is None:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        return log

    async def _change(self, changes: Mapping[PartitionLog, Placement]) -> None:
        """Changes placements; coordinators that move are loaded when it returns. Raises `KafkaStorageError`."""
        if not changes:
            return
        for log, new in changes.items():
            if not new.is_moving:
                self._moving_since.pop(log, None)
        moved = [log for log, new in changes.items() if new.epoch != log.placement.epoch]
        self.topics.placements.change({(log.topic_id, log.index): new for log, new in changes.items()})
        hosts: dict[str, ShardHost[Any]] = {
            host.topic_name: host for host in (self.groups, self.transactions, self.share_states)
        }
        for log in moved:
            end = log.placement.epochs[-1][1]
            if end < log.log_end_offset:
                _log.warning("%r: its leader %d has no records from offset %d on", log, log.placement.leader, end)
                log.truncate(end)
            log.tell_waiters(None)
            if self._share_sessions is not None:
                self._share_sessions.partitions.drop_partition(log.topic_id, log.index)
            if log.topic in hosts:
                hosts[log.topic].move(log.index)
        for host in hosts.values():
            await host.wait_until_loaded()
