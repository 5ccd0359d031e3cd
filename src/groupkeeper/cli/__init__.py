"""Command lines: argument parsing and pure renderers over the operations.

Requests to brokers are in `groupkeeper.operations`.
"""
