"""The nodes of a cluster in one process: stops and starts, outages, and their control over HTTP.

What a single partition does meanwhile is in `placement` and `log`; faults of single requests are in `faults`.
"""
