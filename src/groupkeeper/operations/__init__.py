"""Operators' actions on groups, with typed results: describe, watch, reset, delete.

Printing is in `groupkeeper.cli`, single requests are in `groupkeeper.client`.
"""
