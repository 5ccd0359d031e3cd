"""What an operator does with groups, as typed results: describe, watch, reset, delete.

Printing is in `groupkeeper.cli`, single requests are in `groupkeeper.client`.
"""
