"""Tables of the current state, computed by SQL of DuckDB in tasks of Spark: one module per table.

Queries of the history, which Spark's SQL computes as well, are in `transforms`.
"""
