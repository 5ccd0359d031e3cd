"""Clones: a group's committed offsets, translated to another log with the same records.

Here is how the translated offset is found, and how certain it is. What applies a clone's plan, and undoes it, is
that of all plans, in `groupkeeper.operations.plans`.
"""
