"""`groupkeeper groups`: list, describe, watch, reset, delete.

What they ask and change is in `groupkeeper.operations`.
"""
