"""Calls on what a cluster has beside groups: configs, partitions, records, transactions, ACLs, users, quotas.

Groups and their offsets are in the modules of `groupkeeper.client.admin`.
"""
