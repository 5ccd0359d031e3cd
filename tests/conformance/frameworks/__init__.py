"""Programs with kafkajs, sarama, Spring Kafka and Flink. Each is ours, plays scenes with the broker under test,
and says of each whether it went well. Python's clients, and Java's without a framework, are in the other folders.
"""
