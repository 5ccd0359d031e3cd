"""The leader's side of share groups: fetches, sessions, acknowledgements, storage of share-partitions' states.

The rules of delivery are in `groupkeeper.coordinator.share_partition`.
"""
