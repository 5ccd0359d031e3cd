"""Clusters watched without end: a collector for each, its last snapshot, and a bounded history.

What is served of them over HTTP is in `groupkeeper.web`.
"""
