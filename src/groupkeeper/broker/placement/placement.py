"""Where one partition is: its replicas, those in sync, its leader, and the leader's epochs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

from groupkeeper.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, NotLeaderOrFollower, UnknownLeaderEpoch

NO_LEADER = -1
Epochs = Sequence[tuple[int, int]]
"""Each epoch of leaders, with the offset of its first record."""
_UNDEFINED = (-1, -1)


class Placement:
    """The placement of a partition; there is one log, whichever node leads it.

    Attributes:
        replicas: node ids, the preferred leader first. isr: those in sync. leader: −1 for none. epoch: the leader's.
        epochs: all epochs so far. ends: of replicas out of sync, the offset up to which they have the log.
        adding, removing: those of the replicas that a reassignment adds and takes away; empty when there is none.
    """

    __slots__ = ("adding", "ends", "epoch", "epochs", "isr", "leader", "removing", "replicas")

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
        self.epoch = epoch
        self.epochs = epochs
        self.ends = ends
        self.adding = adding
        self.removing = removing

    def take(self, other: Placement) -> None:
        """Becomes the same as another one."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))

    def led_by(self, leader: int, end_offset: int, isr: Sequence[int]) -> Placement:
        """The same in another leader's epoch, in which the log goes on at this offset, or at the end of what a leader
        that was not in sync has of it.
        """
        end = min(end_offset, self.ends.get(leader, end_offset))
        new = self.with_isr(isr, end)
        new.leader, new.epoch = leader, self.epoch + 1
        new.epochs = [*(one for one in self.epochs if one[1] < end), (new.epoch, end)]
        return new

    def with_isr(self, isr: Sequence[int], end_offset: int) -> Placement:
        """The same with other replicas in sync; those that leave them have the log up to this offset."""
        return self._with(self.replicas, isr, end_offset, self.adding, self.removing)

    # ------------------------------------------------------------------ other replicas

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def original(self) -> list[int]:
        """The replicas without a reassignment that is in progress."""
        return [node for node in self.replicas if node not in self.adding]

    @property
    def target(self) -> list[int]:
        """The replicas once it is done."""
        return [node for node in self.replicas if node not in self.removing]

    def towards(self, target: Sequence[int], end_offset: int) -> Placement:
        """The same with a reassignment to other replicas; −1 as the leader if that was one that is not added any more.
        The log ends at this offset.
        """
        adding = [node for node in target if node not in self.original]
        removing = [node for node in self.original if node not in target]
        return self._with([*target, *removing], self.isr, end_offset, adding, removing)

    def moved(self, end_offset: int) -> Placement:
        """The same at the end of the reassignment."""
        return self._with(self.target, self.isr, end_offset, (), ())

    def _with(
        self, replicas: Sequence[int], isr: Sequence[int], end: int, adding: Sequence[int], removing: Sequence[int]
    ) -> Placement:
        had = {node: self.ends.get(node, end) for node in self.replicas}
        ends = {node: min(had.get(node, 0), end) for node in replicas if node not in isr}
        isr = [node for node in isr if node in replicas]
        leader = self.leader if self.leader in replicas else NO_LEADER
        return Placement(replicas, isr, leader, self.epoch, self.epochs, ends, adding, removing)

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
        """Raises `NotEnoughReplicas` if fewer replicas are in sync (more than there are need not be)."""
        if len(self.isr) < wanted and len(self.isr) < len(self.replicas):
            raise NotEnoughReplicas

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
