"""Starting offsets of queries that keep their offsets outside of Kafka, as Spark's do.

Their progress is read from their checkpoints in `groupkeeper.pipeline.checkpoints`.
"""
