"""Queries that keep their offsets outside of Kafka, as Spark's do: where they are to start.

How far they are is read from their checkpoints in `groupkeeper.pipeline.checkpoints`.
"""
