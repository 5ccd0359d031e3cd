"""Where tables are stored: the output directory with its ledger, which the logs of Delta Lake and Iceberg follow.

Their columns are declared in `tables`, their rows computed in `transforms` and `present`.
"""
