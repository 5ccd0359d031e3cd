"""Kafka's wire protocol: bytes to messages and back. There is no I/O here.

How requests are answered is in `groupkeeper.broker`, how they are sent in `groupkeeper.client`.
"""


class MalformedMessage(ValueError):  # here, as what others derive from cannot be compiled
    """The bytes are not a message of the expected type and version. Every decoding failure ends in this class."""
