"""What operators do with queries that keep their offsets outside of Kafka."""
