"""Asyncio client of any Kafka: connections, cluster routing, admin.

What an operator does with it is in `groupkeeper.operations`.
"""
