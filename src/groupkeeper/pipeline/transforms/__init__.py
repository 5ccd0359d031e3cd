"""The history, and what follows from its new rows: functions of Arrow tables, mostly one module per table. What needs
all of the stored history is computed by Spark's DataFrames.

Tables of the current state are in `present`; reading and writing are in `jobs` and `storage`.
"""
