"""Records of offsets topics, what clusters answered at three instants, and the tables that follow from them.

The tables are recorded (`tables/`): other code for them is right when it makes the same rows from `fleet.py`.
"""
