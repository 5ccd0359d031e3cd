"""Checkpoints of queries, and what queries commit. Real queries of Spark are under `tests/spark`."""
