"""Clones: a group's committed offsets, translated to another log with the same records.

This package finds the translated offset, and how certain it is. A clone's plan is applied and undone as all plans are,
by `groupkeeper.operations.plans`.
"""
