"""Bytes of fetched record sets → columns and Arrow batches, many records at a time. No Spark, no I/O.

Fetching is in `kafka`; tables are computed from the rows in `transforms`.
"""
