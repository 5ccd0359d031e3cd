"""The placement of one partition: its replicas, in-sync set, leader, and leader epochs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

from groupkeeper.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, NotLeaderOrFollower, UnknownLeaderEpoch

NO_LEADER = -1
Epochs = Sequence[tuple[int, int]]
"""Each leader epoch with its start offset."""
_UNDEFINED = (-1, -1)
_TOLD = ("leader", "epoch", "replicas", "isr", "adding", "removing", "eligible", "last_leader")


class Placement:
    """The placement of a partition. All nodes share one log, whichever leads."""

    __slots__ = (
        "adding",
        "eligible",
        "ends",
        "epoch",
        "epochs",
        "held_high_watermark",
        "isr",
        "known_by_cut_off_node",
        "last_leader",
        "leader",
        "led_since",
        "removing",
        "replicas",
    )

    def __init__(
        self,
        replicas: Sequence[int],
        isr: Sequence[int],
        leader: int,
        epoch: int = 0,
        epochs: Epochs = ((0, 0),),
        ends: Mapping[int, int] = MappingProxyType({}),
        adding: Sequence[int] = (),
        removing: Sequence[int] = (),
    ) -> None:
        self.replicas = replicas
        """Node ids, the preferred leader first."""
        self.isr = isr
        """The in-sync set."""
        self.leader = leader
        """The leader's node id; −1: none."""
        self.epoch = self.led_since = epoch
        """The leader epoch, and that in which this leader was elected: removals of replicas begin later ones."""
        self.epochs = epochs
        """The leader epochs of the log's records, and the present one."""
        self.ends = ends
        """The end offsets of replicas that lack the end of the log."""
        self.adding = adding
        """Replicas that a reassignment adds, and next those that it removes; empty: there is none."""
        self.removing = removing
        self.eligible: Sequence[int] = ()
        """Eligible leader replicas (KIP-966): out of sync, but with all committed records."""
        self.last_leader = NO_LEADER
        """The leader before the partition lost its leader; else −1."""
        self.held_high_watermark: int | None = None
        """The high watermark while an in-sync replica lags, or too few are in sync; None: it is the log end."""
        self.known_by_cut_off_node: Mapping[int, Placement] = MappingProxyType({})
        """The placements that cut-off nodes see instead."""

    def copy_from(self, other: Placement) -> None:
        """Copies all fields of another placement but `known_by_cut_off_node`."""
        for name in self.__slots__:
            if name != "known_by_cut_off_node":
                setattr(self, name, getattr(other, name))

    def known_to(self, node: int) -> Placement:
        """The placement as a node sees it: an outdated one if the node is cut off."""
        return self.known_by_cut_off_node.get(node, self)

    def cut_off(self, node: int) -> None:
        """Freezes the placement that a node sees, as the node is cut off."""
        now = self.with_isr(self.isr)
        now.copy_from(self)
        self.known_by_cut_off_node = {**self.known_by_cut_off_node, node: now}

    def rejoin(self, node: int) -> None:
        """Lets a node see the current placement again."""
        self.known_by_cut_off_node = {one: known for one, known in self.known_by_cut_off_node.items() if one != node}

    def is_same(self, other: Placement) -> bool:
        """Whether both look the same to clients."""
        return all(getattr(self, name) == getattr(other, name) for name in _TOLD)

    def with_leader(self, target: Placement, leader: int, isr: Sequence[int], end_offset: int) -> Placement:
        """A copy with this leader and in-sync set, and the replicas, reassignment and replica ends of `target`.
        `end_offset` is the log end; a new leader continues at its own end. A new leader or a removed replica raises the
        epoch.
        """
        end = target.end_at(leader, end_offset)
        ends = {
            one: min(target.ends.get(one, end_offset) if one in self.replicas else 0, end)
            for one in target.replicas
            if one not in isr or (one != leader and one in self.isr and one in target.ends)
        }
        new = Placement(target.replicas, isr, leader, self.epoch, self.epochs, ends, target.adding, target.removing)
        new.led_since = self.led_since if leader == self.leader else self.epoch + 1
        if leader != self.leader or not set(self.replicas) <= set(target.replicas):
            new.epoch += 1
            new.epochs = [*(one for one in self.epochs if one[1] < end), (new.epoch, end)]
        return new

    def end_at(self, leader: int, end_offset: int) -> int:
        """The end offset of the log if `leader` leads: its own end, if it lacks the end of the log."""
        return min(end_offset, self.ends.get(leader, end_offset))

    def hold_high_watermark(
        self, may_follow: Callable[[int, int], bool], end_offset: int, high_watermark: int, wanted: int
    ) -> None:
        """Sets `ends` of replicas that can't follow, and `held_high_watermark`: the high watermark is the lowest end of
        the in-sync set, and stays at `high_watermark` while fewer than `wanted` replicas are in sync.
        `may_follow(replica, leader)`: whether the replica gets what the leader appends.
        """
        others = [one for one in self.isr if one != self.leader]
        lagging = {one: self.ends.get(one, end_offset) for one in others if not may_follow(one, self.leader)}
        self.ends = {**{one: end for one, end in self.ends.items() if one not in self.isr}, **lagging}
        if self.has_too_few_in_sync(wanted):
            self.held_high_watermark = min(high_watermark, end_offset)
        elif lagging:
            self.held_high_watermark = min(max(high_watermark, min(lagging.values())), end_offset)
        else:
            self.held_high_watermark = None

    # ------------------------------------------------------------------ other replicas

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def original(self) -> list[int]:
        """The replicas before the reassignment in progress."""
        return [node for node in self.replicas if node not in self.adding]

    def with_reassignment(self, target: Sequence[int]) -> Placement:
        """A copy with a reassignment to the replicas `target`. If it adds or removes nothing, the additions or removals
        of one in progress stay; so they do in Kafka, which then never ends it.
        """
        adding = [node for node in target if node not in self.replicas] or self.adding
        removing = [node for node in self.replicas if node not in target]
        return self._as([*target, *removing], self.isr, adding, removing or self.removing)

    def without_reassignment(self) -> Placement:
        """A copy without the reassignment in progress."""
        left = self.original
        return self._as(left, [node for node in self.isr if node in left] or left[:1])

    def with_isr(self, isr: Sequence[int]) -> Placement:
        """A copy with another in-sync set."""
        return self._as(self.replicas, isr, self.adding, self.removing)

    def _as(
        self, replicas: Sequence[int], isr: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()
    ) -> Placement:
        return Placement(replicas, isr, self.leader, self.epoch, self.epochs, self.ends, adding, removing)

    # ------------------------------------------------------------------ what a node may serve

    def require_leader(self, node: int, epoch: int = -1) -> None:
        """Raises `NotLeaderOrFollower` unless the node is the leader; on a replica first `FencedLeaderEpoch` or
        `UnknownLeaderEpoch` if the client's leader epoch differs; −1: the client sent none.
        """
        if node == self.leader and (epoch == -1 or epoch == self.epoch):
            return
        self.require_replica(node, epoch)
        raise NotLeaderOrFollower

    def require_replica(self, node: int, epoch: int) -> None:
        """As `require_leader`, for requests that followers may serve, too."""
        if node not in self.replicas:
            raise NotLeaderOrFollower
        if epoch not in (-1, self.epoch):
            raise FencedLeaderEpoch if epoch < self.epoch else UnknownLeaderEpoch

    def require_in_sync(self, wanted: int) -> None:
        """Raises `NotEnoughReplicas` if it `has_too_few_in_sync`."""
        if self.has_too_few_in_sync(wanted):
            raise NotEnoughReplicas

    def has_too_few_in_sync(self, wanted: int) -> bool:
        """Whether fewer than `wanted` replicas are in sync, and not all replicas are."""
        return len(self.isr) < wanted and len(self.isr) < len(self.replicas)

    # ------------------------------------------------------------------ epochs

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at an offset was written."""
        return self.epochs[max(bisect_right(self.epochs, offset, key=itemgetter(1)) - 1, 0)][0]

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and its end offset; (−1, −1) for an unknown epoch."""
        if epoch == self.epoch:
            return epoch, log_end_offset
        at = bisect_right(self.epochs, epoch, key=itemgetter(0))
        if epoch < 0 or at == len(self.epochs):
            return _UNDEFINED
        return self.epochs[at - 1][0] if at else epoch, self.epochs[at][1]
