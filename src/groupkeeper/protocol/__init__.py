"""Kafka's wire protocol: bytes to messages and back. There is no I/O here.

How requests are answered is in `groupkeeper.broker`, how they are sent in `groupkeeper.client`.
"""
