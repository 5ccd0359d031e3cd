"""Batch analysis of offsets with PySpark. The only place that may import PySpark."""
