"""Kafka's wire protocol: bytes to messages and back. There is no I/O here. `groupkeeper.broker` answers requests,
`groupkeeper.client` sends them.
"""


class MalformedMessage(ValueError):  # here, as a base class of other modules' classes cannot be compiled
    """The bytes are not a message of the expected type and version. Every decoding failure ends in this class."""


OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset([OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC])
"""The topics in which brokers keep their own state."""
METADATA_TOPIC = "__cluster_metadata"
"""The log of the controllers."""
