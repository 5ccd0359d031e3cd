"""The history, and tables that need the whole history: DataFrame → DataFrame, mostly one module per table.

Each function ends with a `select` of its table's columns. Tables of the current state are in `present`; reading and
writing are in `jobs` and `storage`.
"""
