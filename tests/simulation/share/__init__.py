"""Share groups: members and their coordinator, consumers and the leader of their share-partition. `python -m
tests.simulation.share` runs both for long.
"""
