"""The history, and tables that need all of it: DataFrame → DataFrame, mostly one module per table.

Each ends with a `select` of its table's columns. Tables of what there is now are in `present`; reading and writing
are in `jobs` and `storage`.
"""
