"""The data directory: its lock and ids, registries of JSON lines, open files.

The logs of partitions are in `log`.
"""
