"""The embedded broker: an asyncio shell around the coordinator, with durable partition logs.

What groups decide is in `groupkeeper.coordinator`.
"""

from groupkeeper.broker.broker import Broker

__all__ = ["Broker"]
