"""How far queries of Spark's Structured Streaming are: what their checkpoints say. Nothing here needs Spark, but for
checkpoints that only Spark's Hadoop reaches.
"""
