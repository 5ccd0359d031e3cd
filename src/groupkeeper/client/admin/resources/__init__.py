"""Calls on a cluster's other resources: configs, partitions, records, transactions, ACLs, users, quotas.

Groups and their offsets are in the modules of `groupkeeper.client.admin`.
"""
