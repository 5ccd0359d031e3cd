"""Tables of the current state, computed by SQL in this process: one module per table.

Tables that Spark computes are in `transforms`.
"""
