"""The share coordinator: the durable state of share-partitions (`__share_group_state`).

It knows no groups and no members.
"""
