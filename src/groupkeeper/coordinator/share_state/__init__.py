"""The share coordinator: the durable state of share-partitions (`__share_group_state`).

Groups and their members are in `share`, not here.
"""
