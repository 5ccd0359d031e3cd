"""Typed results and arguments of the calls on resources. Plain immutable values, in Kafka's terms."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.batch import Failure
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.client.topology import Node, TopicPartition
from groupkeeper.protocol.errors import KafkaError


class ConfigResourceType(StrEnum):
    """The type of a resource with configs. A type that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    TOPIC = "TOPIC"
    BROKER = "BROKER"
    BROKER_LOGGER = "BROKER_LOGGER"
    CLIENT_METRICS = "CLIENT_METRICS"
    GROUP = "GROUP"


class ConfigResource(NamedTuple):
    """A resource with configs: `ConfigResource.topic("orders")`, `ConfigResource.broker(1)` …

    `name` is a topic's name, a group's id, a broker's id as text ("": the cluster-wide default of all brokers).
    """

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """A topic."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def group(cls, group_id: str) -> ConfigResource:
        """A group, of any type (Kafka 4.0 and later)."""
        return cls(ConfigResourceType.GROUP, group_id)

    @classmethod
    def broker(cls, broker_id: int | None = None) -> ConfigResource:
        """A broker by its id; None: the cluster-wide default of all brokers."""
        return cls(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))

    @classmethod
    def broker_logger(cls, broker_id: int) -> ConfigResource:
        """The levels of a broker's loggers (Kafka 2.4 and later)."""
        return cls(ConfigResourceType.BROKER_LOGGER, str(broker_id))

    @classmethod
    def client_metrics(cls, name: str) -> ConfigResource:
        """A subscription to clients' metrics (Kafka 3.7 and later)."""
        return cls(ConfigResourceType.CLIENT_METRICS, name)

    @property
    def broker_id(self) -> int | None:
        """The broker to send the request to; None: any. Raises IllegalArgument when the name is no broker's id."""
        if self.type not in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
            return None
        if not self.name and self.type is ConfigResourceType.BROKER:
            return None
        if not (self.name.isascii() and self.name.isdigit()):
            raise IllegalArgument(f"a broker is named by its id, not {self.name!r}")
        return int(self.name)


class ConfigSource(StrEnum):
    """Where a config's value comes from. A source that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"
    DYNAMIC_BROKER_LOGGER_CONFIG = "DYNAMIC_BROKER_LOGGER_CONFIG"
    DYNAMIC_CLIENT_METRICS_CONFIG = "DYNAMIC_CLIENT_METRICS_CONFIG"
    DYNAMIC_GROUP_CONFIG = "DYNAMIC_GROUP_CONFIG"


class ConfigType(StrEnum):
    """The type of a config's value. UNKNOWN: the broker is older than 2.6, or newer than this client."""

    UNKNOWN = "UNKNOWN"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class ConfigSynonym(NamedTuple):
    """A possible source of a config's value. The first of the synonyms decides."""

    name: str
    value: str | None
    source: ConfigSource


class Config(NamedTuple):
    """One config of a resource."""

    name: str
    value: str | None
    """None: it is sensitive, or not set."""
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    """UNKNOWN with brokers before 2.6."""
    synonyms: tuple[ConfigSynonym, ...] = ()
    """() unless requested."""
    documentation: str | None = None
    """None unless requested, with brokers before 2.6, and if the config has none."""

    @property
    def is_default(self) -> bool:
        """Whether the config has its default value."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ListChange(NamedTuple):
    """Adds items to a config that is a list (`append`), or removes some (`subtract`); other items stay. `items`
    are comma-separated. To set the whole list give a text instead.
    """

    items: str
    is_removal: bool = False

    @classmethod
    def append(cls, items: str) -> ListChange:
        """Add items."""
        return cls(items)

    @classmethod
    def subtract(cls, items: str) -> ListChange:
        """Remove items."""
        return cls(items, is_removal=True)


class NewPartitions(NamedTuple):
    """A topic's new number of partitions. `assignments`: replicas of each added one; None: the broker decides."""

    total_count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class Replica(NamedTuple):
    """A replica of a partition in a log directory.

    `size`: bytes of its segments. `lag`: offsets behind the high watermark (or, if `is_future`, behind the
    replica that it will replace).
    """

    size: int
    lag: int
    is_future: bool = False


class LogDir(NamedTuple):
    """A log directory of a broker, with the replicas that lie there.

    `total_bytes` and `usable_bytes` are the volume's, None before 3.3. `error`: why the directory can't be used
    (LogDirNotFound, KafkaStorageError); None when it can.
    """

    replicas: dict[TopicPartition, Replica]
    total_bytes: int | None = None
    usable_bytes: int | None = None
    error: KafkaError | None = None


class TransactionState(StrEnum):
    """The state of a transaction, as Kafka sends it. A state that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @classmethod
    def parse(cls, text: str) -> TransactionState:
        """The state named so; UNKNOWN for any other text."""
        return cls(text) if text in _TRANSACTION_STATES else cls.UNKNOWN


_TRANSACTION_STATES = frozenset(TransactionState)


class TransactionListing(NamedTuple):
    """A transactional id of list_transactions."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionListings(NamedTuple):
    """The transactional ids of all brokers, and the brokers that failed.

    `transactions` may be used when some brokers failed: it then lacks the ids that the failed brokers coordinate.
    """

    transactions: dict[str, TransactionListing]
    failed: dict[Node, Failure]

    def all(self) -> dict[str, TransactionListing]:
        """All of them; raises the first failure when a broker failed."""
        for failure in self.failed.values():
            raise failure
        return self.transactions


class TransactionDescription(NamedTuple):
    """A transactional id at its coordinator."""

    coordinator: Node
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None = None
    """When its last transaction began, which may have ended; None when there was none."""
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions that an open transaction has written to, if the caller may see them."""


class ProducerState(NamedTuple):
    """The state of an idempotent producer in a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    """−1: not known."""
    last_timestamp: int = -1
    """In ms; −1: not known."""
    coordinator_epoch: int = -1
    """−1: no transaction ended in this partition yet."""
    transaction_start: int | None = None
    """The first offset of its open transaction; None when it has none open."""


class FencedProducer(NamedTuple):
    """The result of fence_producers: producers with an older epoch are refused from then on."""

    producer_id: int
    producer_epoch: int


# By their codes in messages; 0: those of newer brokers.
CONFIG_TYPES = {
    0: ConfigResourceType.UNKNOWN,
    2: ConfigResourceType.TOPIC,
    4: ConfigResourceType.BROKER,
    8: ConfigResourceType.BROKER_LOGGER,
    16: ConfigResourceType.CLIENT_METRICS,
    32: ConfigResourceType.GROUP,
}
CONFIG_CODES = {kind: code for code, kind in CONFIG_TYPES.items() if code}
CONFIG_SOURCES = dict(enumerate(ConfigSource))
CONFIG_VALUE_TYPES = dict(enumerate(ConfigType))
