"""The share coordinator: the durable state of share-partitions (`__share_group_state`).

Groups and members have no part in it.
"""
