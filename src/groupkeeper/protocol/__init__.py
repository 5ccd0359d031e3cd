"""Kafka's wire protocol: bytes to messages and back. There is no I/O here. `groupkeeper.broker` answers requests,
`groupkeeper.client` sends them.
"""


class MalformedMessage(ValueError):  # here, as a base class of other modules' classes cannot be compiled
    """The bytes are not a message of the expected type and version. Every decoding failure ends in this class."""
