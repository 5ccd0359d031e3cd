"""What Apache Kafka's own serialisers write, as a corpus for the tests: Java programs, and `pack`, which runs them.

The packed corpus is in `tests/unit/protocol`, with the tests that read it.
"""
