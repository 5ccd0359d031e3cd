"""Committed offsets of all groups: commit, fetch, delete, expire, also in transactions.

The checks of each group type are in its `OffsetRules`.
"""
