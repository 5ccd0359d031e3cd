"""Share groups' records between leader and log: fetches, sessions, acknowledgements, storage of their state.

The rules of delivery are in `groupkeeper.coordinator.share_partition`.
"""
