"""`groupkeeper context`: clusters saved under names.

How options become a connection is in `framework`.
"""
