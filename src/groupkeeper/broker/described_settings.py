"""Settings as clients are told them: value, where it comes from, and what else could have given it (KIP-226)."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.broker.config import Config
from groupkeeper.broker.topic_config import SYNONYM_BY_SETTING, TopicConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC_SOURCE = 1
STATIC_BROKER_SOURCE = 4
DEFAULT_SOURCE = 5

_OTHER_SYNONYMS = {
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
_GROUP_SETTINGS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.assignment.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
)
"""Settings a group can have of its own (GF-02); the default is the broker's `group.` setting."""


class DescribedSetting(NamedTuple):
    """One setting of a resource. `synonyms` are (name, value, source), the one that decides first."""

    name: str
    value: str | None
    source: int
    type: str
    doc: str
    is_read_only: bool
    synonyms: tuple[tuple[str, str | None, int], ...]


def describe_topic(config: TopicConfig, broker: Config) -> Iterator[DescribedSetting]:
    """Every setting of a topic."""
    for setting in TopicConfig.settings():
        value = setting.format(getattr(config, setting.attribute))
        names = _synonyms_of(setting.name)
        synonyms = [one for name in names for one in _given_value(name, broker)]
        synonyms += [one for name in names[:1] for one in _default_value(name)]
        if setting.name in config.overrides:
            synonyms.insert(0, (setting.name, value, TOPIC_SOURCE))
        source = source_of(setting.name, config, broker)
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, tuple(synonyms))


def describe_broker(config: Config) -> Iterator[DescribedSetting]:
    """Every setting of the broker; none can be changed while it runs."""
    for setting in Config.settings():
        value = setting.format(getattr(config, setting.attribute))
        source = STATIC_BROKER_SOURCE if setting.name in config.given else DEFAULT_SOURCE
        synonyms = (*_given_value(setting.name, config), *_default_value(setting.name))
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, True, synonyms)


def describe_group(broker: Config) -> Iterator[DescribedSetting]:
    """Every setting of a group; groups have no settings of their own yet."""
    for name in _GROUP_SETTINGS:
        setting = Config.setting(f"group.{name}")
        assert setting is not None
        value = setting.format(getattr(broker, setting.attribute))
        synonyms = (*_given_value(setting.name, broker), *_default_value(setting.name))
        yield DescribedSetting(name, value, synonyms[0][2], setting.type, setting.doc, False, synonyms)


def _given_value(name: str, config: Config) -> Iterator[tuple[str, str | None, int]]:
    setting = Config.setting(name)
    if setting is not None and name in config.given:
        yield name, setting.format(getattr(config, setting.attribute)), STATIC_BROKER_SOURCE


def _default_value(name: str) -> Iterator[tuple[str, str | None, int]]:
    setting = Config.setting(name)
    if setting is not None and setting.default is not None:
        yield name, setting.format(setting.default), DEFAULT_SOURCE


def _synonyms_of(name: str) -> tuple[str, ...]:
    """The broker settings that can give a topic setting its default, the strongest first; empty when there is none."""
    if name in _OTHER_SYNONYMS:
        return _OTHER_SYNONYMS[name]
    return (SYNONYM_BY_SETTING[name],) if name in SYNONYM_BY_SETTING else ()


def source_of(name: str, config: TopicConfig, broker: Config) -> int:
    """Code of where a topic setting's value comes from: the topic, the broker's configuration, or the default."""
    if name in config.overrides:
        return TOPIC_SOURCE
    if any(synonym in broker.given for synonym in _synonyms_of(name)):
        return STATIC_BROKER_SOURCE
    return DEFAULT_SOURCE
