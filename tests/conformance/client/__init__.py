"""Our client on Apache Kafka of many versions, with every kind of security. Commands belong to `conformance/cli`."""
