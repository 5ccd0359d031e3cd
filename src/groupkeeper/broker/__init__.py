"""The embedded broker: an asyncio shell around the coordinator, with durable partition logs."""

from groupkeeper.broker.broker import Broker

__all__ = ["Broker"]
