"""Checkpoints of queries, and what queries commit."""
