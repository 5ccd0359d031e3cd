"""The embedded broker: an asyncio shell around the coordinator, with durable partition logs."""
