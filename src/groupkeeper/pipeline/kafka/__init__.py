"""Reading clusters: what to read, fetching it, the source for Spark, log ends and records at an instant.

What records mean is in `decode`.
"""
