"""Where tables are: the output directory with its ledger, and tables of a lake that follow.

What is in them is decided in `tables`, and computed in `transforms` and `present`.
"""
