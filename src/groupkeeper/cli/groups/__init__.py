"""`groupkeeper groups`: list, describe, watch, reset, delete.

Their requests and changes are in `groupkeeper.operations`.
"""
