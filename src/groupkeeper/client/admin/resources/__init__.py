"""Calls on what a cluster has beside groups: configs, partitions, records, rights …"""
