"""Share groups as the group coordinator keeps them (KIP-932): members, assignment, where their partitions begin.

Records in flight are in `share_partition`, their durable state in `share_state`.
"""
