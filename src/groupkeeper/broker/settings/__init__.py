"""Settings by Kafka's names: tables, files, changes while the broker runs, how clients are told of them.

What a setting does is where it is used.
"""
