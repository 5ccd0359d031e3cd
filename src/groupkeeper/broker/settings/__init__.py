"""Settings by Kafka's names: tables, files, changes while the broker runs, how clients see them.

What a setting does is where it is used.
"""
