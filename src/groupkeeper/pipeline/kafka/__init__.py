"""Reading from clusters: plans of reads, fetches, the source for Spark, log ends and records at an instant.

Records are decoded in `decode`.
"""
