"""Bytes of fetched record sets → columns and Arrow batches, many records at a time. No Spark, no I/O.

Fetching is in `kafka`; what rows mean together is in `transforms`.
"""
