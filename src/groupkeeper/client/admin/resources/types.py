"""Typed results and arguments of the calls on resources. Plain immutable values, in Kafka's terms."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.errors import IllegalArgument


class ConfigResourceType(StrEnum):
    """What has configs. A type that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    TOPIC = "TOPIC"
    BROKER = "BROKER"
    BROKER_LOGGER = "BROKER_LOGGER"
    CLIENT_METRICS = "CLIENT_METRICS"
    GROUP = "GROUP"


class ConfigResource(NamedTuple):
    """One thing that has configs: ``ConfigResource.topic("orders")``, ``ConfigResource.broker(1)`` …

    ``name`` is a topic's name, a group's id, a broker's id as text ("" for what all brokers have alike).
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
        """A broker by its id; None: what was set for all brokers alike."""
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
        """The broker that has to be asked; None: any. Raises IllegalArgument when the name is no broker's id."""
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
    """How a config's value reads. UNKNOWN: the broker is older than 2.6, or newer than this client."""

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
    """One of the places that a config's value could come from. The first one decides."""

    name: str
    value: str | None
    source: ConfigSource


class Config(NamedTuple):
    """One config of a resource. ``value`` None: it is sensitive, or not set.

    ``synonyms`` are () and ``documentation`` None unless asked for, and on brokers that are too old to tell
    (documentation: before 2.6).
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class ListChange(NamedTuple):
    """A change of a config that is a list, which leaves the other items: ``append`` or ``subtract``.

    ``items`` are comma-separated. To set the whole list give a text instead.
    """

    items: str
    is_removal: bool = False

    @classmethod
    def append(cls, items: str) -> ListChange:
        """Add items."""
        return cls(items)

    @classmethod
    def subtract(cls, items: str) -> ListChange:
        """Take items out."""
        return cls(items, is_removal=True)


class NewPartitions(NamedTuple):
    """How many partitions a topic is to have. ``assignments``: replicas of each new one; None: the broker decides."""

    total_count: int
    assignments: tuple[tuple[int, ...], ...] | None = None
