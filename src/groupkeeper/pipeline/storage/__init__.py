"""Where tables are stored: the output directory with its ledger, and a lake that mirrors it.

Their columns are declared in `tables`, their rows computed in `transforms` and `present`.
"""
