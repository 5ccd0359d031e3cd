"""Outages of running nodes: suspended, slow, or cut off from other nodes or clients. Until the others notice, such a
node stays in sync, and holds back the high watermark (docs/design/cluster.md).
"""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING

from groupkeeper.broker.cluster.nodes import RETRY_S, Cluster
from groupkeeper.broker.log.stale_log import rejoin
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.protocol.errors import KafkaError

if TYPE_CHECKING:
    from groupkeeper.broker.faults.injected import Fault, Faults

_log = getLogger("groupkeeper.broker")


@dataclass(slots=True)
class _Outage:
    """The outage of one node."""

    kind: str
    """A word for people."""
    since_s: float
    """When its replicas last had all records, by the loop's clock."""
    fault: Fault | None
    """A fault of the node's requests; None: none."""
    lags: bool
    """Whether its replicas get no records now."""
    is_silent: bool
    """Whether the controller gets no heartbeats."""
    timer: TimerHandle | None = None

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.fault is not None:
            self.fault.remove()


class Outages(Cluster):
    """The part of a `Broker` that simulates outages of nodes."""

    _outages: dict[int, _Outage]

    @property
    def faults(self) -> Faults:
        """The injected faults: docs/testing.md."""
        raise NotImplementedError

    async def pause_node(self, node: int) -> None:
        """Suspends a node: it accepts requests but answers none, and its replicas get no records. After
        `broker.session.timeout.ms` other nodes take over its leaders.
        """
        async with self._one_at_a_time:
            self._begin(node, "paused", partial(self.faults.hold, None, node=node), is_silent=True)

    async def cut_off_node(self, node: int) -> None:
        """Cuts a node off from the others: clients reach it, but no records get to or from its replicas. After
        `broker.session.timeout.ms` other nodes take over its leaders; the node still returns the nodes and leaders that
        it knew, serves records up to its known high watermark, and accepts records that will be lost.
        """
        async with self._one_at_a_time:
            self._begin(node, "cut off", None, is_silent=True)
            placements = self.topics.placements
            placements.running_by_cut_off_node[node] = frozenset(placements.running)
            for log in self.topics.logs():
                log.placement.cut_off(node)

    async def hide_node(self, node: int) -> None:
        """Cuts a node off from clients: its connections break, and its port refuses them. It keeps its leaders."""
        async with self._one_at_a_time:
            self._begin(node, "hidden", None, lags=False)
            await self.fronts[node].go_down()

    async def slow_node(self, node: int, delay_ms: float) -> None:
        """Delays a node's responses by `delay_ms`; its replicas get records only once in this time."""
        async with self._one_at_a_time:
            self._begin(node, "slow", partial(self.faults.delay, None, delay_ms, node=node))
            self._again(node, delay_ms / 1000, self._catch_up)

    async def resume_node(self, node: int) -> None:
        """Ends the outage that `pause_node`, `cut_off_node`, `hide_node` or `slow_node` began. The node's replicas are
        then in sync. Raises `KafkaStorageError` as `stop_node`.
        """
        async with self._one_at_a_time:
            self._require_known(node)
            outage = self._outages.get(node)
            if outage is None:
                raise ValueError(f"node {node} is neither paused, cut off, hidden nor slow")
            is_hidden, outage.lags = not outage.lags, False
            try:
                self._return(node)
            except KafkaError:
                outage.lags = not is_hidden
                raise
            if is_hidden:
                await self.fronts[node].listen()
            self._forget_outage(node)
            await self._load()

    def state_of(self, node: int) -> str:
        """The state of a node: "running", "down", "paused", "cut off", "hidden" or "slow"."""
        outage = self._outages.get(node)
        return outage.kind if outage is not None else super().state_of(node)

    # ------------------------------------------------------------------ what follows

    def _begin(
        self, node: int, kind: str, fault: Callable[[], Fault] | None, *, lags: bool = True, is_silent: bool = False
    ) -> None:
        self._require(node, runs=True)
        if node in self._outages:
            raise ValueError(f"node {node} is {self._outages[node].kind} already")
        now_s = get_running_loop().time()
        self._outages[node] = _Outage(kind, now_s, None if fault is None else fault(), lags, is_silent)
        if lags:
            self._apply({log: log.placement for log in self.topics.logs() if node in log.placement.replicas})
        if is_silent:
            config = self.config
            least_ms = min(config.broker_session_timeout_ms, config.replica_lag_time_max_ms / 2)
            self._again(node, least_ms / 1000, self._notice)

    def _may_follow(self, node: int, leader: int) -> bool:
        return not any(one.lags for name, one in self._outages.items() if name in (node, leader))

    def _topic_created(self, topic: Topic) -> None:
        self._apply({log: log.placement for log in topic.partitions})

    def _again(self, node: int, delay_s: float, act: Callable[[int, _Outage], None]) -> None:
        outage = self._outages[node]

        def run() -> None:
            wait_s = delay_s
            try:
                act(node, outage)
            except KafkaError as error:
                _log.error("cannot change who is in sync, the next try is in %d s: %s", RETRY_S, error)
                wait_s = RETRY_S
            outage.timer = get_running_loop().call_later(wait_s, run)

        outage.timer = get_running_loop().call_later(delay_s, run)

    def _notice(self, node: int, outage: _Outage) -> None:
        """Moves the node's leaders after its session timeout, or shrinks in-sync sets after the replica lag limit."""
        silent_ms = (get_running_loop().time() - outage.since_s) * 1000
        if silent_ms >= self.config.broker_session_timeout_ms and node in self.topics.placements.running:
            self._leave(node)
        elif silent_ms >= self.config.replica_lag_time_max_ms:
            self._shrink(node)

    def _catch_up(self, node: int, outage: _Outage) -> None:
        """Lets the replicas of a slow node catch up; if they lagged for too long, they first leave the in-sync sets."""
        now_s = get_running_loop().time()
        if (now_s - outage.since_s) * 1000 >= self.config.replica_lag_time_max_ms:
            self._shrink(node)
        outage.lags = False
        try:
            targets = self._with_node_in_sync(node)
            self._apply(targets)
        finally:
            outage.lags = True
        outage.since_s = now_s
        self._apply({log: log.placement for log in targets})

    def _shrink(self, node: int) -> None:
        """Removes a node that lacks records from in-sync sets, for leaders that can reach the controller."""
        targets = {}
        for log in self.topics.logs():
            at = log.placement
            leader = self._outages.get(at.leader)
            lacks = node in at.isr and at.ends.get(node, log.log_end_offset) < log.log_end_offset
            if lacks and at.leader != NO_LEADER and (leader is None or not leader.is_silent):
                targets[log] = at.with_isr([one for one in at.isr if one != node])
        self._apply(targets)

    def _forget_outage(self, node: int) -> None:
        outage = self._outages.pop(node, None)
        if outage is not None:
            outage.end()
        if self.topics.placements.running_by_cut_off_node.pop(node, None) is not None:
            for log in self.topics.logs():
                log.placement.rejoin(node)
                rejoin(log, node)
                log.tell_waiters(None)
            for host in self._hosts:
                host.rejoin(node)
            self._hold_coordinators()

    def _end_outages(self) -> None:
        for node in list(self._outages):
            self._forget_outage(node)
