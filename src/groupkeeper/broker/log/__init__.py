"""Partitions on disk: segments, indexes, producers' state, cleaning, topics and their directories.

It knows no coordinator; what clients ask is in `apis`.
"""
