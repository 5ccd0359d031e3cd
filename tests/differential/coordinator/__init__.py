"""Share and streams groups and transactions on both brokers, and their records in the log. Classic and consumer groups,
whose programs are longer, have a room each.
"""
