"""Tables of what there is now, made of rows in memory.

Traces and clusters are under `spark/transforms`.
"""
