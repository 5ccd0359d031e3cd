"""The broker's drivers for the pure coordinators: shards, their logs and timers, loading and unloading, transaction
markers.

Rules of groups and transactions are in `groupkeeper.coordinator`.
"""
