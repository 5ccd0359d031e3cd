"""Real clients and Apache's tools on the broker under test: ours, or Apache Kafka, which shows that a test itself is
right. Raw requests are under `tests/broker`.
"""
