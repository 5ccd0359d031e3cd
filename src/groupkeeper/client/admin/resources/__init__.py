"""Calls on what a cluster has beside groups: configs, partitions, records, rights …

Groups and their offsets are in the modules of `groupkeeper.client.admin`.
"""
