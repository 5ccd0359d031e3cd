"""Share groups as the group coordinator keeps them (KIP-932): members, assignment, initialization of share-partitions.

Records in flight are in `share_partition`, their durable state in `share_state`.
"""
