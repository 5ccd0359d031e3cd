"""The collectors' snapshots over HTTP: metrics, and how the program itself is.

Clusters are watched in `groupkeeper.live`.
"""
