"""The progress of queries of Spark's Structured Streaming, from their checkpoints. Nothing here needs Spark, except for
checkpoints that only Spark's Hadoop can reach.
"""
