"""Where one partition is: its replicas, those in sync, its leader, and the leader's epochs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

from groupkeeper.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, NotLeaderOrFollower, UnknownLeaderEpoch

NO_LEADER = -1
Epochs = Sequence[tuple[int, int]]
"""Each epoch of leaders, with the offset of its first record."""
_UNDEFINED = (-1, -1)
_TOLD = ("leader", "epoch", "replicas", "isr", "adding", "removing", "eligible", "last_leader")


class Placement:
    """The placement of a partition; there is one log, whichever node leads it.

    Attributes:
        replicas: node ids, the preferred leader first. isr: those in sync. leader: −1 for none. epoch: the leader's.
        led_since: the epoch since which it leads; later epochs began as replicas were taken away. epochs: all epochs so
        far. ends: of replicas that don't have the whole log, the offset up to which they have it.
        adding, removing: those of the replicas that a reassignment adds and takes away; empty when there is none.
        eligible: those out of sync that may lead when none is in sync, because they have all that is committed
        (KIP-966). last_leader: who led before there was no leader; else −1. limit: the high watermark where it is not
        the end of the log, because a replica in sync lags, or too few are in sync. outdated: what nodes that are cut
        off know in its place.
    """

    __slots__ = (
        "adding",
        "eligible",
        "ends",
        "epoch",
        "epochs",
        "isr",
        "last_leader",
        "leader",
        "led_since",
        "limit",
        "outdated",
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
        self.isr = isr
        self.leader = leader
        self.epoch = self.led_since = epoch
        self.epochs = epochs
        self.ends = ends
        self.adding = adding
        self.removing = removing
        self.eligible: Sequence[int] = ()
        self.last_leader = NO_LEADER
        self.limit: int | None = None
        self.outdated: Mapping[int, Placement] = MappingProxyType({})

    def take(self, other: Placement) -> None:
        """Becomes the same as another one; what nodes that are cut off know stays."""
        for name in self.__slots__:
            if name != "outdated":
                setattr(self, name, getattr(other, name))

    def known_to(self, node: int) -> Placement:
        """What a node knows of it."""
        return self.outdated.get(node, self)

    def cut_off(self, node: int) -> None:
        """From now on this node knows no more than now."""
        now = self.with_isr(self.isr)
        now.take(self)
        self.outdated = {**self.outdated, node: now}

    def rejoin(self, node: int) -> None:
        """This node knows of it again."""
        self.outdated = {one: known for one, known in self.outdated.items() if one != node}

    def is_same(self, other: Placement) -> bool:
        """Whether clients are told the same of both."""
        return all(getattr(self, name) == getattr(other, name) for name in _TOLD)

    def becomes(self, target: Placement, leader: int, isr: Sequence[int], end_offset: int) -> Placement:
        """The same with another leader, others in sync, and the replicas and reassignment of the target, as far as
        those have the log. It ends at this offset; another leader goes on where its own log ends. The epoch grows with
        another leader, and when a replica is taken away.
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
        """Where a log that ends at this offset ends under another leader."""
        return min(end_offset, self.ends.get(leader, end_offset))

    def hold(self, may_follow: Callable[[int, int], bool], end_offset: int, high_watermark: int, wanted: int) -> None:
        """Sets how far the replicas have a log that ends at an offset, and so the high watermark, which was at another
        one: it follows the last replica in sync, and not while there are fewer than the wanted ones. `may_follow` says
        of a replica and a leader whether the first gets what the other appends.
        """
        others = [one for one in self.isr if one != self.leader]
        lagging = {one: self.ends.get(one, end_offset) for one in others if not may_follow(one, self.leader)}
        self.ends = {**{one: end for one, end in self.ends.items() if one not in self.isr}, **lagging}
        if self.lacks(wanted):
            self.limit = min(high_watermark, end_offset)
        elif lagging:
            self.limit = min(max(high_watermark, min(lagging.values())), end_offset)
        else:
            self.limit = None

    # ------------------------------------------------------------------ other replicas

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def original(self) -> list[int]:
        """The replicas without a reassignment that is in progress."""
        return [node for node in self.replicas if node not in self.adding]

    def towards(self, target: Sequence[int]) -> Placement:
        """The same with a reassignment to other replicas. One in progress goes on adding and removing, if the new one
        adds or removes nothing; so does Kafka, which then never ends it.
        """
        adding = [node for node in target if node not in self.replicas] or self.adding
        removing = [node for node in self.replicas if node not in target]
        return self._as([*target, *removing], self.isr, adding, removing or self.removing)

    def reverted(self) -> Placement:
        """The same without the reassignment that is in progress."""
        left = self.original
        return self._as(left, [node for node in self.isr if node in left] or left[:1])

    def with_isr(self, isr: Sequence[int]) -> Placement:
        """The same with other replicas in sync."""
        return self._as(self.replicas, isr, self.adding, self.removing)

    def _as(
        self, replicas: Sequence[int], isr: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()
    ) -> Placement:
        return Placement(replicas, isr, self.leader, self.epoch, self.epochs, self.ends, adding, removing)

    # ------------------------------------------------------------------ what a node may serve

    def require_leader(self, node: int, epoch: int = -1) -> None:
        """Raises `NotLeaderOrFollower` unless the node leads, and first, on a replica, `FencedLeaderEpoch` or
        `UnknownLeaderEpoch` for a client with another leader epoch; −1 is none.
        """
        if node == self.leader and (epoch == -1 or epoch == self.epoch):
            return
        self.require_replica(node, epoch)
        raise NotLeaderOrFollower

    def require_replica(self, node: int, epoch: int) -> None:
        """The same for what followers may serve, too."""
        if node not in self.replicas:
            raise NotLeaderOrFollower
        if epoch not in (-1, self.epoch):
            raise FencedLeaderEpoch if epoch < self.epoch else UnknownLeaderEpoch

    def require_in_sync(self, wanted: int) -> None:
        """Raises `NotEnoughReplicas` if it lacks some."""
        if self.lacks(wanted):
            raise NotEnoughReplicas

    def lacks(self, wanted: int) -> bool:
        """Whether fewer replicas are in sync; more than there are need not be."""
        return len(self.isr) < wanted and len(self.isr) < len(self.replicas)

    # ------------------------------------------------------------------ epochs

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at an offset was written."""
        return self.epochs[max(bisect_right(self.epochs, offset, key=itemgetter(1)) - 1, 0)][0]

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The last epoch up to this one, and the offset where it ends; −1 and −1 for one that is not known."""
        if epoch == self.epoch:
            return epoch, log_end_offset
        at = bisect_right(self.epochs, epoch, key=itemgetter(0))
        if epoch < 0 or at == len(self.epochs):
            return _UNDEFINED
        return self.epochs[at - 1][0] if at else epoch, self.epochs[at][1]
