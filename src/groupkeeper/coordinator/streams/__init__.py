"""Streams groups (KIP-1071): members, topology, tasks.

Their committed offsets are in `offsets`.
"""
