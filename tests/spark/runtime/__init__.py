"""Spark itself: clusters, workers, spark-submit. What jobs write there belongs to `jobs`."""
