"""The embedded broker: an asyncio driver of the coordinator, with durable partition logs.

The decisions about groups are in `groupkeeper.coordinator`.
"""

from groupkeeper.broker.broker import Broker

__all__ = ["Broker"]
