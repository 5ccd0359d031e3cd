"""How far queries of Spark's Structured Streaming are: their progress, from their checkpoints. Nothing here needs
Spark, but for checkpoints that only Spark's Hadoop reaches.
"""
