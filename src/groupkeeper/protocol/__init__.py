"""Kafka's wire protocol: bytes to messages and back. Pure.

How requests are answered is in `groupkeeper.broker`.
"""
