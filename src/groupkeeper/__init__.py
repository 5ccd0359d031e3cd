"""Groupkeeper operates Kafka consumer groups: commands, an asyncio admin client and an embedded broker."""

__version__ = "0.1.0"
