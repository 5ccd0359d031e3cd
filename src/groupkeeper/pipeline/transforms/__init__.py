"""The history, and tables that follow from its new rows: functions of Arrow tables, mostly one module per table. Facts
that need the whole stored history are computed by Spark's DataFrames.

Tables of the current state are in `present`; reading and writing are in `jobs` and `storage`.
"""
