"""Clusters watched without end: a collector for each, what it found last, and a bounded history."""
