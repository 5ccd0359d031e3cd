"""The same requests to Apache Kafka and to our broker: every answer is compared. Programs are random but for a seed;
requests with one known answer belong to `tests/broker`.
"""
