"""The drivers of the pure coordinators in a broker: shards, their logs and timers, loading and unloading, transaction
markers.

Rules of groups and transactions are in `groupkeeper.coordinator`.
"""
