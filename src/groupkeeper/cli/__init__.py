"""Command lines: options, texts and exit codes over the operations.

Requests to brokers are in `groupkeeper.client`, and what an operator does with them is in `groupkeeper.operations`.
"""
