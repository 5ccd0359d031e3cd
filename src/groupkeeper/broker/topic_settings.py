"""How topic settings are described to clients: where each value comes from (KIP-226)."""

from __future__ import annotations

from groupkeeper.broker.topic_config import SYNONYM_BY_SETTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.config import Config
    from groupkeeper.broker.topic_config import TopicConfig

TOPIC_SOURCE = 1
STATIC_BROKER_SOURCE = 4
DEFAULT_SOURCE = 5
GROUP_SOURCE = 8

_OTHER_SYNONYMS = {
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def synonyms_of(name: str) -> tuple[str, ...]:
    """The broker settings that can give a topic setting its default, the strongest first; empty when there is none."""
    if name in _OTHER_SYNONYMS:
        return _OTHER_SYNONYMS[name]
    return (SYNONYM_BY_SETTING[name],) if name in SYNONYM_BY_SETTING else ()


def source_of(name: str, config: TopicConfig, broker: Config) -> int:
    """Code of where a topic setting's value comes from: the topic, the broker's configuration, or the default."""
    if name in config.overrides:
        return TOPIC_SOURCE
    if any(synonym in broker.given for synonym in synonyms_of(name)):
        return STATIC_BROKER_SOURCE
    return DEFAULT_SOURCE
