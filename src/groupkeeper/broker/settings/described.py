"""Settings as DescribeConfigs returns them: the value, its source, and its synonyms (KIP-226).

Order, sources and synonyms are those of Apache Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.catalog import base_name, broker_setting, default_text, listed_names
from groupkeeper.broker.settings.client_metrics import MetricsSubscription
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.dynamic import ALL_BROKERS
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT, QUOTAS
from groupkeeper.broker.settings.order import in_java_order
from groupkeeper.broker.settings.table import FIXED
from groupkeeper.broker.settings.topic import SYNONYM_BY_SETTING, TopicConfig

TOPIC_SOURCE = 1
DYNAMIC_BROKER_SOURCE = 2
DYNAMIC_DEFAULT_SOURCE = 3
STATIC_BROKER_SOURCE = 4
DEFAULT_SOURCE = 5
CLIENT_METRICS_SOURCE = 7
GROUP_SOURCE = 8

_FAMILIES = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
"""Families of broker settings: the first given setting of a family decides."""
_FAMILY_BY_NAME = {name: names for names in _FAMILIES for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}

UNKNOWN_TYPE = "unknown"
_SECRET_TYPES = ("password", UNKNOWN_TYPE)

Synonym = tuple[str, str | None, int]
"""Name, value and source."""


class DescribedSetting(NamedTuple):
    """One setting of a resource. Unknown settings (`UNKNOWN_TYPE`) count as secrets, as they may be secret."""

    name: str
    value: str | None
    """None: unset, or a secret."""
    source: int
    """One of the codes `…_SOURCE`."""
    type: str
    doc: str | None
    """None: an unknown setting."""
    is_read_only: bool
    synonyms: tuple[Synonym, ...]
    """The settings that can give its value, in order of precedence."""

    @property
    def is_sensitive(self) -> bool:
        return self.type in _SECRET_TYPES


def describe_topic(config: TopicConfig, broker: Config) -> Iterator[DescribedSetting]:
    """Every setting of a topic."""
    for setting in TopicConfig.settings():
        value = setting.format(getattr(config, setting.attribute))
        if value is None:
            continue  # one of Kafka's internal settings, described only if it is set
        synonyms = _synonyms(SYNONYM_BY_SETTING.get(setting.name), broker)
        if setting.name in config.overrides:
            synonyms.insert(0, (setting.name, value, TOPIC_SOURCE))
        source = synonyms[0][2] if synonyms else DEFAULT_SOURCE
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, tuple(synonyms))


def describe_broker(config: Config) -> Iterator[DescribedSetting]:
    """Every setting of the broker. Given settings that Kafka describes only by request come first, Groupkeeper's own
    settings that are not given come last.
    """
    given = {name: None for _, layer in _layers(config) for name in layer}
    listed = listed_names()
    for name in in_java_order(given.keys() - set(listed), len(given)):
        yield _of_broker(name, config)
    for name in listed:
        yield _of_broker(name, config)
    for setting in Config.settings():
        if setting.is_ours and setting.name not in given:
            yield _of_broker(setting.name, config)


def describe_all_brokers(config: Config) -> Iterator[DescribedSetting]:
    """The settings that dynamic updates gave to all brokers."""
    names = config.changed.get(ALL_BROKERS, {})
    for name in in_java_order(names, len(names)):
        described = _of_broker(name, config)
        synonyms = tuple(one for one in described.synonyms if one[2] == DYNAMIC_DEFAULT_SOURCE)
        yield described._replace(value=synonyms[0][1], source=DYNAMIC_DEFAULT_SOURCE, synonyms=synonyms)


def _of_broker(name: str, config: Config) -> DescribedSetting:
    synonyms = tuple(_synonyms(name, config))
    value, source = synonyms[0][1:] if synonyms else (None, DEFAULT_SOURCE)
    own = Config.setting(name)
    if own is not None and not _is_hidden(name, config):
        value = own.format(getattr(config, own.attribute)) or value
    elif own is not None:
        value = own.format(own.default)
    known = own or KEPT_AS_TEXT.get(name)
    doc, is_read_only = (None, name not in QUOTAS) if known is None else (known.doc, known.change == FIXED)
    return DescribedSetting(name, value, source, _type_of(name), doc, is_read_only, synonyms)


def _is_hidden(name: str, config: Config) -> bool:
    """Whether a dynamic update set another setting of its family: then the value in the file no longer counts."""
    changed = [config.changed.get(broker, {}) for broker in (ALL_BROKERS, str(config.node_id))]
    return any(one in layer for one in _FAMILY_BY_NAME.get(name, ()) if one != name for layer in changed)


def _type_of(name: str) -> str:
    found = broker_setting(name)
    return UNKNOWN_TYPE if found is None else found.type


_GROUP_SYNONYMS = {"streams.assignor.name": "group.streams.assignors"}


def describe_group(config: GroupConfig, broker: Config) -> Iterator[DescribedSetting]:
    """Every setting of a group. If the group's own value violates a bound that was narrowed later, this is the given
    value, not the clamped one in force.
    """
    for setting in GroupConfig.settings():
        name = _GROUP_SYNONYMS.get(setting.name, f"group.{setting.name}")
        if not setting.is_listed and setting.name not in config.overrides and name not in broker.given:
            continue
        synonyms = _synonyms(name, broker)
        if not synonyms:
            synonyms = [(setting.name, setting.format(setting.default), DEFAULT_SOURCE)]
        if setting.name in config.overrides:
            synonyms.insert(
                0, (setting.name, setting.format(setting.parse(config.overrides[setting.name])), GROUP_SOURCE)
            )
        _, value, source = synonyms[0]
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, tuple(synonyms))


def describe_subscription(subscription: MetricsSubscription) -> Iterator[DescribedSetting]:
    """Every setting of a subscription to clients' metrics."""
    for setting in MetricsSubscription.settings():
        value = setting.format(getattr(subscription, setting.attribute))
        is_given = setting.name in subscription.overrides
        source = CLIENT_METRICS_SOURCE if is_given else DEFAULT_SOURCE
        synonyms = ((setting.name, value, source),) if is_given else ()
        yield DescribedSetting(setting.name, value, source, setting.type, setting.doc, False, synonyms)


def _layers(config: Config) -> tuple[tuple[int, Mapping[str, str]], ...]:
    """The given texts of the broker with their source, in order of precedence. The broker's id counts as given in the
    file.
    """
    identity = {name: str(config.node_id) for name in ("node.id", "broker.id")}
    return (
        (DYNAMIC_BROKER_SOURCE, config.changed.get(str(config.node_id), {})),
        (DYNAMIC_DEFAULT_SOURCE, config.changed.get(ALL_BROKERS, {})),
        (STATIC_BROKER_SOURCE, {**config.given, **identity}),
    )


def _synonyms(name: str | None, config: Config) -> list[Synonym]:
    """The synonyms of a broker setting in order of precedence, beginning with the first one of its own name; empty for
    None.
    """
    names = _names_for(name)
    found = [
        (one, _text(one, layer[one]), source) for source, layer in _layers(config) for one in names if one in layer
    ]
    found += [(one, default, DEFAULT_SOURCE) for one in names if (default := default_text(one)) is not None]
    return list(dropwhile(lambda synonym: synonym[0] != name, found))


def _text(name: str, given: str) -> str | None:
    if _type_of(name) in _SECRET_TYPES:
        return None
    setting = broker_setting(name)
    try:
        return given if setting is None else setting.format(setting.parse(given))
    except InvalidSetting:  # a bad text in the file, for a setting without effect here
        return given


def _names_for(name: str | None) -> Sequence[str]:
    """The broker settings that can give a setting its value, in order of precedence; empty for None."""
    if name is None:
        return ()
    return _FAMILY_BY_NAME.get(name) or tuple(dict.fromkeys((name, base_name(name))))


def source_of(name: str, config: TopicConfig, broker: Config) -> int:
    """The code of the source of a topic setting's value: the topic, the broker's settings, or the default."""
    if name in config.overrides:
        return TOPIC_SOURCE
    names = _names_for(SYNONYM_BY_SETTING.get(name))
    given = (source for source, layer in _layers(broker) if any(one in layer for one in names))
    return next(given, DEFAULT_SOURCE)
