"""The durable state of the leader of share-partitions.

This is the interface between the leader of share-partitions and the share coordinators. In a cluster the leader sends
requests to other brokers (ReadShareGroupState, WriteShareGroupState); here it makes calls.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from groupkeeper.broker.shares.state import ShareStateRuntime
    from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
    from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState


class SharePersister:
    """Reads and writes the state of share-partitions.

    Both are for a leader on a node. They raise `InvalidRequest` for a share-partition that its group has not
    initialized, or has deleted; `FencedLeaderEpoch` when there was a newer leader; `UnknownTopicOrPartition` when the
    topic or partition is gone; `CoordinatorLoadInProgress` and `NotCoordinator` when there is no share coordinator (not
    yet, or no longer) after a wait of a few seconds, `CoordinatorNotAvailable` when replicas lag, or the node is cut
    off from it: the call may be retried. They yield to other tasks only while they wait.
    """

    def __init__(self, states: ShareStateRuntime) -> None:
        self._states = states

    async def read_state(self, key: SharePartitionKey, leader_epoch: int, node: int) -> ShareState:
        """The initial state of a leader; earlier leaders are fenced from then on. A start offset of −1 was never set:
        `share.auto.offset.reset` decides.
        """
        await self._ready(key, node)
        state = self._states.read(key, leader_epoch)
        await self._states.replicated(key)
        return state

    async def write_state(
        self, key: SharePartitionKey, written: Callable[[], ShareStateWrite], node: int
    ) -> ShareStateWrite:
        """Stores what changed, and returns it; all replicas in sync have it then.

        Args:
            written: returns the change once the share coordinator is available, as changes may overtake each other
                meanwhile; its exceptions are passed on. The batches are merged with the stored batches: the higher
                delivery count wins, then the higher state. Offsets below the start offset are dropped.

        `FencedStateEpoch` is raised when the share-partition was reset since its state epoch was read: its offset was
        altered, or the group was deleted and created again. Then the leader's state is invalid.
        """
        await self._ready(key, node)
        change = written()
        self._states.write(key, change)
        await self._states.replicated(key)
        return change

    async def _ready(self, key: SharePartitionKey, node: int) -> None:
        await self._states.ready(key)
        self._states.require_reached(key, node)
