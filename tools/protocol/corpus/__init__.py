"""What Apache Kafka's own serialisers write, as a corpus for the tests."""
