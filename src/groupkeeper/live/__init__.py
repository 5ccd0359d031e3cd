"""Continuous watching of clusters: a collector for each, its last snapshot, and a bounded history.

Pages and metrics over HTTP are in `groupkeeper.web`.
"""
