"""The data directory: its lock and ids, registries of JSON lines, open files.

What lies in partitions is in `log`.
"""
