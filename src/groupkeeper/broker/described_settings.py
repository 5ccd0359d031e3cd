"""Settings as clients are told them: value, where it comes from, and what else could have given it (KIP-226)."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.broker.config import Config
from groupkeeper.broker.dynamic_config import ALL_BROKERS, is_dynamic
from groupkeeper.broker.group_config import GroupConfig
from groupkeeper.broker.topic_config import SYNONYM_BY_SETTING, TopicConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOPIC_SOURCE = 1
DYNAMIC_BROKER_SOURCE = 2
DYNAMIC_DEFAULT_SOURCE = 3
STATIC_BROKER_SOURCE = 4
DEFAULT_SOURCE = 5
GROUP_SOURCE = 8

_OTHER_SYNONYMS = {
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
_SYNONYMS_OF_BROKER = {names[0]: names for names in _OTHER_SYNONYMS.values()}


# Kafka knows them as settings that only change while a broker runs.
_QUOTAS_OF_BROKER = frozenset(
    ["leader.replication.throttled.rate", "follower.replication.throttled.rate",
     "replica.alter.log.dirs.io.max.bytes.per.second"]
)  # fmt: skip
UNKNOWN_TYPE = "unknown"


class DescribedSetting(NamedTuple):
    """One setting of a resource. `synonyms` are (name, value, source), the one that decides first. The value of a
    setting that nobody knows (`UNKNOWN_TYPE`) may be a secret and isn't told.
    """

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
        if value is None:
            continue  # one of Kafka's internal settings, told only where it is given
        names = _synonyms_of(setting.name)
        synonyms = [one for name in names for one in _given_values(name, broker)]
        synonyms += _default_of(names)
        if setting.name in config.overrides:
            synonyms.insert(0, (setting.name, value, TOPIC_SOURCE))
        source = source_of(setting.name, config, broker)
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, tuple(synonyms))


def describe_broker(config: Config) -> Iterator[DescribedSetting]:
    """Every setting of the broker."""
    for setting in Config.settings():
        value = setting.format(getattr(config, setting.attribute))
        names = _SYNONYMS_OF_BROKER.get(setting.name, (setting.name,))
        synonyms = (*(one for name in names for one in _given_values(name, config)), *_default_of(names))
        source = synonyms[0][2] if synonyms else DEFAULT_SOURCE
        yield DescribedSetting(
            setting.name, value, source, setting.type, setting.doc, not is_dynamic(setting.name), synonyms
        )
    given = {**config.changed.get(ALL_BROKERS, {}), **config.changed.get(str(config.node_id), {})}
    for name in given:
        if Config.setting(name) is None:
            yield _foreign(name, tuple(_given_values(name, config)))


def _foreign(name: str, synonyms: tuple[tuple[str, str | None, int], ...]) -> DescribedSetting:
    """A setting that clients gave the broker, and that it has no use for."""
    if name in _QUOTAS_OF_BROKER:
        _, value, source = synonyms[0]
        return DescribedSetting(name, value, source, "long", "", False, synonyms)
    hidden = tuple((name, None, source) for name, _, source in synonyms)
    return DescribedSetting(name, None, hidden[0][2], UNKNOWN_TYPE, "", True, hidden)


def describe_all_brokers(config: Config) -> Iterator[DescribedSetting]:
    """The settings that were given to all brokers while they ran."""
    for name in config.changed.get(ALL_BROKERS, {}):
        setting = Config.setting(name)
        synonyms = tuple(one for one in _given_values(name, config) if one[2] == DYNAMIC_DEFAULT_SOURCE)
        if setting is None:
            yield _foreign(name, synonyms)
            continue
        yield DescribedSetting(name, synonyms[0][1], DYNAMIC_DEFAULT_SOURCE, setting.type, setting.doc, False, synonyms)


def describe_group(config: GroupConfig, broker: Config) -> Iterator[DescribedSetting]:
    """Every setting of a group; where the group's own breaks a bound that was narrowed later, what was given."""
    for setting in GroupConfig.settings():
        name = f"group.{setting.name}"
        synonyms = [*_given_values(name, broker), *_default_of((name,))]
        if not synonyms:
            synonyms = [(setting.name, setting.format(setting.default), DEFAULT_SOURCE)]
        if setting.name in config.overrides:
            synonyms.insert(
                0, (setting.name, setting.format(setting.parse(config.overrides[setting.name])), GROUP_SOURCE)
            )
        _, value, source = synonyms[0]
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, tuple(synonyms))


def _given_values(name: str, config: Config) -> Iterator[tuple[str, str | None, int]]:
    """What was given for a setting of the broker, that in force first."""
    setting = Config.setting(name)
    for source, given in (
        (DYNAMIC_BROKER_SOURCE, config.changed.get(str(config.node_id), {})),
        (DYNAMIC_DEFAULT_SOURCE, config.changed.get(ALL_BROKERS, {})),
        (STATIC_BROKER_SOURCE, config.given),
    ):
        if name in given:
            yield name, given[name] if setting is None else setting.format(setting.parse(given[name])), source


def _default_of(names: Sequence[str]) -> list[tuple[str, str | None, int]]:
    """The default of the first of these settings of the broker that has one; one or none."""
    for setting in map(Config.setting, names):
        if setting is not None and setting.default is not None:
            return [(setting.name, setting.format(setting.default), DEFAULT_SOURCE)]
    return []


def _synonyms_of(name: str) -> tuple[str, ...]:
    """The broker settings that can give a topic setting its default, the strongest first; empty when there is none."""
    if name in _OTHER_SYNONYMS:
        return _OTHER_SYNONYMS[name]
    return (SYNONYM_BY_SETTING[name],) if name in SYNONYM_BY_SETTING else ()


def source_of(name: str, config: TopicConfig, broker: Config) -> int:
    """Code of where a topic setting's value comes from: the topic, the broker's configuration, or the default."""
    if name in config.overrides:
        return TOPIC_SOURCE
    given = (source for synonym in _synonyms_of(name) for _, _, source in _given_values(synonym, broker))
    return next(given, DEFAULT_SOURCE)
