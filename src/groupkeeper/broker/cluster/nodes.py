"""The nodes of a cluster in one process: stops and starts nodes, and moves leaders and coordinators between them. All
nodes share one log per partition, and one state per coordinator: placements decide which node leads. When a call
returns, the change has taken effect.
"""

from __future__ import annotations

from asyncio import Lock, Task, TimerHandle, get_running_loop, sleep
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from logging import getLogger
from types import MappingProxyType
from typing import Any

from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.coordination.group_host import GroupHost
from groupkeeper.broker.coordination.shard_host import ShardHost
from groupkeeper.broker.coordination.transaction_host import TransactionHost
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.stale_log import diverge
from groupkeeper.broker.network.front import Front
from groupkeeper.broker.network.listeners import Endpoint
from groupkeeper.broker.placement.change import ElectionTerms, changed
from groupkeeper.broker.placement.placement import NO_LEADER, Placement
from groupkeeper.broker.settings.features import has_eligible_replicas
from groupkeeper.broker.shares.state_host import ShareStateHost
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError

_log = getLogger("groupkeeper.broker")

RETRY_S = 10
"""Seconds until an automatic change is retried after it could not be stored."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # a broker without share groups doesn't import them
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.shares.sessions import ShareSessions


class Cluster(BrokerBase):
    """The part of a `Broker` that manages its nodes."""

    fronts: dict[int, Front]
    """The nodes, by id."""
    _one_at_a_time: Lock
    _moving_since: dict[PartitionLog, float]
    _killed: set[int]
    _holds_coordinators = False
    _timer: TimerHandle | None = None
    _moves_back: Task[None] | None = None
    groups: GroupHost
    """The group coordinators."""
    share_states: ShareStateHost
    """The share coordinators."""
    transactions: TransactionHost
    """The transaction coordinators."""

    _share_sessions: ShareSessions | None

    # ------------------------------------------------------------------ where clients find nodes

    def endpoint(self, listener: str, node: int | None = None) -> Endpoint:
        """The address of a node for clients of a listener; None: of the first node."""
        front = self.fronts[next(iter(self.fronts)) if node is None else node]
        return front.endpoint(listener)

    def endpoints(self, call: Call, among: Collection[int] | None = None) -> list[Endpoint]:
        """The addresses of the running nodes (only those in `among`, if given) for a client, as the called node sees
        them.
        """
        running, listener = self.topics.placements.running_known_to(call.node), call.listener
        return [
            front.endpoint(listener)
            for node, front in self.fronts.items()
            if node in running and (among is None or node in among)
        ]

    # ------------------------------------------------------------------ nodes

    async def stop_node(self, node: int) -> None:
        """Stops a node in an orderly way: its leaders move first, then its connections are closed and its ports refuse
        clients. A partition without another in-sync replica becomes offline. Raises `KafkaStorageError` if this cannot
        be stored: then nothing has changed.
        """
        async with self._one_at_a_time:
            self._require(node, runs=True)
            self._leave(node)
            self._forget_outage(node)
            await self._load()
            await self.fronts[node].go_down()

    async def kill_node(self, node: int) -> None:
        """As `stop_node`, but its connections break first, and waiting requests get no response. When it is back, it is
        no longer an eligible leader replica; a stopped node can be killed for that effect.
        """
        async with self._one_at_a_time:
            self._require_known(node)
            self._killed.add(node)
            await self.fronts[node].go_down()
            self._forget_outage(node)  # until it leaves, records that only it has or lacks stay uncommitted
            self._leave(node)
            await self._load()

    async def start_node(self, node: int) -> None:
        """Starts a stopped node on the same ports. Its replicas are in sync at once. Offline partitions get a leader;
        others keep theirs until leaders move back (`auto.leader.rebalance.enable`). Raises `KafkaStorageError` as
        `stop_node`.
        """
        async with self._one_at_a_time:
            self._require(node, runs=False)
            await self.fronts[node].listen()
            try:
                self._return(node)
            except KafkaError:
                await self.fronts[node].go_down()
                raise
            await self._load()

    def _return(self, node: int) -> None:
        with self._running(self.topics.placements.running | {node}):
            self._apply(self._with_node_in_sync(node), unclean=self._killed.intersection({node}))
        self._killed.discard(node)

    @contextmanager
    def _running(self, nodes: set[int]) -> Iterator[None]:
        """Sets the running nodes; restores the old ones if the body fails to store its changes."""
        placements, before = self.topics.placements, self.topics.placements.running
        placements.running = nodes
        try:
            yield
        except KafkaError:
            placements.running = before
            raise

    def _with_node_in_sync(self, node: int) -> dict[PartitionLog, Placement]:
        """The placements of a node's partitions with its own replicas, and those that follow it, back in sync."""
        here = {log: at for log in self.topics.logs() if node in (at := log.placement).replicas}
        return {
            log: self._with_in_sync(log, at, at.replicas if at.leader == node else [node]) for log, at in here.items()
        }

    def _with_in_sync(self, log: PartitionLog, at: Placement, nodes: Iterable[int] = ()) -> Placement:
        """The placement with `nodes` and the replicas that a reassignment adds in sync, if they run and can follow the
        leader. Unchanged without a leader.
        """
        if at.leader == NO_LEADER:
            return at
        held_up = {one for one in at.adding if self._is_throttled(log, one)}
        wanted = self.topics.placements.running.intersection(at.replicas, {*nodes, *at.adding}) - held_up
        may = {one for one in wanted if self._may_follow(one, at.leader)}
        joined = at.with_isr(sorted(may.union(at.isr)))
        joined.ends = {one: end for one, end in at.ends.items() if one not in may}  # joined replicas have the whole log
        return joined

    def _may_follow(self, node: int, leader: int) -> bool:
        """Whether a replica on `node` gets what the leader appends."""
        return True

    def _is_throttled(self, log: PartitionLog, node: int) -> bool:
        """Whether the throttle rate still holds up an added replica; then a timer lets reassignments go on in time."""
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
        try:
            self._resume_held_changes()
        except KafkaError as error:
            _log.error("cannot go on with reassignments, the next try is in %d s: %s", RETRY_S, error)
            self._timer = get_running_loop().call_later(RETRY_S, self._run_on)

    def stop_timer(self) -> None:
        """Cancels the timer of throttled reassignments."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cancel_moves(self) -> None:
        """Stops automatic moves of leaders and reassignments."""
        self.stop_timer()
        if self._moves_back is not None:
            self._moves_back.cancel()
            self._moves_back = None

    def _resume_held_changes(self) -> None:
        logs = list(self.topics.logs()) if len(self.fronts) > 1 else []
        self._apply(
            {log: self._with_in_sync(log, at) for log in logs if len((at := log.placement).isr) < len(at.replicas)}
        )

    async def resume_held_changes(self) -> None:
        """After settings changed: runs unclean elections, goes on with throttled reassignments, and moves high
        watermarks that a higher `min.insync.replicas` held.
        """
        self._resume_held_changes()
        await self._load()

    def _leave(self, node: int) -> None:
        here = {log: at for log in self.topics.logs() if node in (at := log.placement).isr}
        with self._running(self.topics.placements.running - {node}):
            self._apply({log: at.with_isr([one for one in at.isr if one != node]) for log, at in here.items()})

    def state_of(self, node: int) -> str:
        """The state of a node: "running" or "down"."""
        return "running" if node in self.topics.placements.running else "down"

    def _forget_outage(self, node: int) -> None:
        raise NotImplementedError

    def _require_known(self, node: int) -> None:
        if len(self.fronts) == 1:
            raise ValueError("this broker is the only one: give brokers=3")
        if node not in self.fronts:
            raise ValueError(f"there is no node {node}: the nodes are {', '.join(map(str, self.fronts))}")

    def _require(self, node: int, *, runs: bool) -> None:
        self._require_known(node)
        if (self.state_of(node) != "down") != runs:
            raise ValueError(f"node {node} {'is stopped already' if runs else 'runs already'}")

    # ------------------------------------------------------------------ leaders

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes a running in-sync replica the leader of a partition. Raises `UnknownTopicOrPartition`, ValueError."""
        log = self._log(topic, partition)
        at = log.placement
        if node not in at.isr or node not in self.topics.placements.running:
            raise ValueError(f"node {node} cannot lead {topic}-{partition}: in sync are {list(at.isr)}")
        self._apply({log: at}, wanted={log: node})
        await self._load()

    async def move_coordinator(self, group_id: str, node: int) -> None:
        """Moves the coordinator of a group: the leader of its partition of `__consumer_offsets`."""
        await self._move_coordinator(self.groups, group_id, node)

    async def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        """Moves the coordinator of a transactional id, likewise."""
        await self._move_coordinator(self.transactions, transactional_id, node)

    async def _move_coordinator(self, host: ShardHost[Any], key: str, node: int) -> None:
        host.ensure_topic()
        await self.move_leader(host.topic_name, host.partition_of(key), node)

    async def set_in_sync(self, topic: str, partition: int, nodes: Collection[int]) -> None:
        """Sets the in-sync set of a partition. Raises `UnknownTopicOrPartition`, ValueError."""
        log = self._log(topic, partition)
        at, running = log.placement, self.topics.placements.running
        isr = sorted(running.intersection(at.replicas, nodes))
        if len(isr) < len(nodes) or at.leader not in isr:
            raise ValueError(
                f"{sorted(nodes)} cannot be in sync for {topic}-{partition}: give running replicas of "
                f"{list(at.replicas)}, the leader {at.leader} among them"
            )
        self._apply({log: at.with_isr(isr)})
        await self._load()

    async def elect_leaders(
        self, logs: Iterable[PartitionLog], *, is_unclean: bool
    ) -> dict[PartitionLog, KafkaError | None]:
        """Elects the preferred leaders if they are in sync; with `is_unclean`, any replica of partitions without a
        leader. Returns the error of each partition, None for a new leader.
        """
        outcomes: dict[PartitionLog, KafkaError | None] = {}
        targets = {}
        for log in logs:
            at = log.placement
            if at.leader != NO_LEADER if is_unclean else at.leader == at.replicas[0]:
                outcomes[log] = errors.ElectionNotNeeded()
            else:
                outcomes[log] = (
                    errors.EligibleLeadersNotAvailable() if is_unclean else errors.PreferredLeaderNotAvailable()
                )
                targets[log] = at
        wanted = {} if is_unclean else {log: at.replicas[0] for log, at in targets.items()}
        elected = self._apply(targets, wanted=wanted, is_unclean=is_unclean)
        await self._load()
        return outcomes | dict.fromkeys(elected)

    async def reassign(self, targets: Mapping[PartitionLog, Sequence[int] | None]) -> None:
        """Reassigns partitions to other replicas; None cancels the reassignment in progress. A reassignment ends when
        all added replicas are in sync: at once if they run. Raises `KafkaStorageError`.
        """
        changes = {}
        for log, replicas in targets.items():
            at = log.placement
            target = at.without_reassignment() if replicas is None else at.with_reassignment(replicas)
            changes[log] = self._with_in_sync(log, target)
        self._apply(changes)
        await self._load()

    def _log(self, topic: str, partition: int) -> PartitionLog:
        log = self.topics.partition(topic, partition)
        if log is None:
            raise errors.UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        return log

    def move_back_later(self, logs: Iterable[PartitionLog]) -> None:
        """Schedules a move of leaders back to the preferred replicas, if any of these logs has another leader."""
        config = self.config
        if self._moves_back is not None or len(self.fronts) == 1 or not config.auto_leader_rebalance_enable:
            return
        if any(log.placement.leader != log.placement.replicas[0] for log in logs):
            delay_s = config.leader_imbalance_check_interval_seconds
            self._moves_back = get_running_loop().create_task(self._move_back(delay_s))

    async def _move_back(self, delay_s: float) -> None:
        await sleep(delay_s)
        async with self._one_at_a_time:
            self._moves_back = None
            logs = [log for log in self.topics.logs() if log.placement.leader != log.placement.replicas[0]]
            wanted = {log: log.placement.replicas[0] for log in logs}
            try:
                self._apply({log: log.placement for log in logs}, wanted=wanted)
            except KafkaError as error:
                _log.error("cannot move leaders back to the first replicas: %s", error)
            self.move_back_later(logs)

    # ------------------------------------------------------------------ what follows

    def _apply(
        self,
        targets: Mapping[PartitionLog, Placement],
        *,
        wanted: Mapping[PartitionLog, int] = MappingProxyType({}),
        is_unclean: bool | None = None,
        unclean: Collection[int] = (),
    ) -> Collection[PartitionLog]:
        """Applies placements, elects the leaders that follow from them, and returns the changed logs. `wanted`: leaders
        to elect if they may lead. `is_unclean` None: by the topic's setting. Raises `KafkaStorageError`; then nothing
        has changed.
        """
        running, has_eligible = self.topics.placements.running, has_eligible_replicas(self.config)
        changes: dict[PartitionLog, Placement] = {}
        others: list[tuple[Placement, Placement]] = []
        ends, moved, held = {}, [], []  # held: their waiting requests must look again
        for log, target in targets.items():
            at, config = log.placement, log.config
            may = config.unclean_leader_election_enable if is_unclean is None else is_unclean
            least = config.min_insync_replicas
            terms = ElectionTerms(
                log.log_end_offset, running, least, has_eligible, may, wanted.get(log, NO_LEADER), unclean
            )
            new = changed(at, target, terms)
            ends[log] = target.end_at(new.leader, log.log_end_offset)
            if new.leader != NO_LEADER and (at.leader == NO_LEADER or new.leader not in at.isr):  # others follow it
                terms = ElectionTerms(ends[log], running, least, has_eligible)
                new = changed(new, self._with_in_sync(log, new, new.replicas), terms)
            new.hold_high_watermark(self._may_follow, ends[log], log.high_watermark, least)
            if new.held_high_watermark != at.held_high_watermark or at.held_high_watermark is not None:
                held.append(log)
            if new.is_same(at):
                others.append((at, new))
                continue
            changes[log] = new
            if new.led_since != at.led_since:
                moved.append(log)
            elif new.epoch != at.epoch:
                held.append(log)
        self._write(changes)
        for at, new in others:
            at.ends, at.held_high_watermark = new.ends, new.held_high_watermark
        for log in moved:
            self._move(log, ends[log])
        for log in held:
            log.tell_waiters(None)
        self._hold_coordinators()
        self.move_back_later(targets)
        return changes

    def _write(self, changes: Mapping[PartitionLog, Placement]) -> None:
        if changes:
            self.topics.placements.change({(log.topic_id, log.index): new for log, new in changes.items()})
        for log, new in changes.items():
            if not new.is_moving:
                self._moving_since.pop(log, None)

    def _hold_coordinators(self) -> None:
        """Sets whether a coordinator is cut off, or its records wait for replicas before they are committed."""
        found = [self.topics.get(host.topic_name) for host in self._hosts]
        logs = (log for topic in found if topic is not None for log in topic.partitions)
        self._holds_coordinators = any(host.has_stale for host in self._hosts) or any(
            log.placement.held_high_watermark is not None for log in logs
        )
        self._set_answers_may_wait()

    def _set_answers_may_wait(self) -> None:
        raise NotImplementedError

    def _move(self, log: PartitionLog, end_offset: int) -> None:
        """Applies a new leader to log, waiting requests, share-partitions, coordinator. `end_offset`: its log's end."""
        self.topics.take_leader(log)
        diverge(log, end_offset)
        if end_offset < log.log_end_offset:
            _log.warning("%r: its leader %d has no records from offset %d on", log, log.placement.leader, end_offset)
            self.topics.truncate(log, end_offset)
        log.tell_waiters(None)
        if self._share_sessions is not None:
            self._share_sessions.partitions.drop_partition(log.topic_id, log.index)
        for host in self._hosts:
            if host.topic_name == log.topic:
                host.move(log.index)

    @property
    def _hosts(self) -> tuple[ShardHost[Any], ...]:
        return self.groups, self.transactions, self.share_states

    async def _load(self) -> None:
        """Waits until moved coordinators are loaded."""
        for host in self._hosts:
            await host.wait_until_loaded()
