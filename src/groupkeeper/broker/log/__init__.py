"""Partitions on disk: segments, indexes, producers' state, cleaning, topics and their directories. Nothing here knows
coordinators; requests are handled in `apis`.
"""
