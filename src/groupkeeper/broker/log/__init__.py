"""Partitions on disk: segments, indexes, producers' state, cleaning, topics and their directories.

Coordinators have no part in it; requests are handled in `apis`.
"""
