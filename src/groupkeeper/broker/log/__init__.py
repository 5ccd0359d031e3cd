"""Partitions on disk: segments, indexes, producers' state, cleaning, topics and their directories. Nothing here depends
on coordinators; `apis` handles requests.
"""
