"""Where the places of groups are in another cluster, on given records.

Clones by commands are under `tests/cli/plans`.
"""
