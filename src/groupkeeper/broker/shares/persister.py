"""The durable state of the leader of share-partitions.

The interface between the leader of share-partitions and the coordinators: in a cluster these are requests to other
brokers (Read- and WriteShareGroupState), here they are calls.
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

    Both raise `InvalidRequest` for a share-partition that its group has not initialized, or not any more;
    `FencedLeaderEpoch` when a newer leader was there; `UnknownTopicOrPartition` when the topic or partition is gone;
    `CoordinatorLoadInProgress` and `NotCoordinator` when there is no share coordinator yet or any more, after having
    waited a few seconds for it: the call may be retried. They don't yield to other tasks but for that waiting.
    """

    def __init__(self, states: ShareStateRuntime) -> None:
        self._states = states

    async def read_state(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        """The initial state of a leader; earlier leaders are fenced from then on. A start offset of −1 was never set:
        `share.auto.offset.reset` decides.
        """
        await self._states.ready(key)
        return self._states.read(key, leader_epoch)

    async def write_state(self, key: SharePartitionKey, written: Callable[[], ShareStateWrite]) -> ShareStateWrite:
        """Stores what changed, and returns it; it is in the log then.

        Args:
            written: gives it once the share coordinator is there, as changes may overtake each other meanwhile; what
                it raises passes. Its batches are merged with the stored ones: the higher delivery count wins, then the
                higher state. Offsets below its start offset are dropped.

        `FencedStateEpoch` is raised when the share-partition was reset since its state epoch was read: its offset was
        altered, or the group deleted and made again. The leader's state is then invalid.
        """
        await self._states.ready(key)
        change = written()
        self._states.write(key, change)
        return change
