"""Clusters watched without end: a collector for each, its last snapshot, and a bounded history."""
