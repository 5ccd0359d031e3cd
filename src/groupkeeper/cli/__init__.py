"""Command lines: options, texts and exit codes over the operations.

Requests to brokers are in `groupkeeper.client`, operators' actions in `groupkeeper.operations`.
"""
