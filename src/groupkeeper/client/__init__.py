"""Asyncio client of any Kafka: connections, cluster routing, admin.

Operators' tasks, which take several calls, are in `groupkeeper.operations`.
"""
