"""Programs of classic groups on both brokers. Members of the consumer protocol are in the room beside."""
