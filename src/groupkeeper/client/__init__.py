"""Asyncio client of any Kafka: connections, cluster routing, admin."""
