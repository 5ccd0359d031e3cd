"""Tables of what there is now, as SQL that runs in this process: one module per table.

Tables that Spark computes are in `transforms`.
"""
