"""From the facts in Apache Kafka's jars to the committed protocol modules."""
