"""Committed offsets of all groups: commit, fetch, delete, expire, also in transactions.

What a type of group lets its members commit is asked of the group.
"""
