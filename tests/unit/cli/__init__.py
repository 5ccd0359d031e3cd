"""Commands without a cluster, in rooms like those of `src/groupkeeper/cli`. What they show of a cluster is under
`tests/cli`.
"""
