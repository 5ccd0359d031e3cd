"""The settings that a group can have of its own (Kafka 4.4.0 GroupConfig): their table, and the registry of the groups'
values.

Most of them override a broker setting, and are declared with it (`groupkeeper.coordinator.kernel.settings`). Their
values for a group are in `broker.group_configs.at(group_id, node).effective`, by the name of the broker setting;
handlers of the coordinator get the same object. Settings without a broker setting are declared here, as attributes
of `GroupConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.group_settings import BOUNDED, FAMILIES, coordinator_settings, declarations, offloading
from groupkeeper.broker.settings.order import in_java_order
from groupkeeper.broker.settings.stored import StoredSettings
from groupkeeper.broker.settings.table import Setting, SettingsTable, flag, text
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.java_numbers import INT_MAX

_RELATED = ("session.timeout.ms", "heartbeat.interval.ms")
_DURATION = re.compile(
    r"P(?:(\+?\d+)D)?(T(?=.)(?:(\+?\d+)H)?(?:(\+?\d+)M)?(?:(\+?\d+)(?:[.,](\d{0,9}))?S)?)?", re.ASCII | re.IGNORECASE
)


class OffsetReset(NamedTuple):
    """Where a share partition starts: at `latest`, at `earliest`, or (`by_duration`) `duration_ms` ago."""

    strategy: str
    duration_ms: int = 0


def parse_offset_reset(text: str) -> OffsetReset:
    """A parsed `share.auto.offset.reset`. Raises ValueError."""
    if text in ("latest", "earliest"):
        return OffsetReset(text)
    strategy, _, duration = text.partition(":")
    found = _DURATION.fullmatch(duration)
    if strategy != "by_duration" or found is None or not (found[1] or found[2]):
        raise ValueError(text)
    days, hours, minutes, seconds = (int(found[index] or 0) for index in (1, 3, 4, 5))
    millis = int((found[6] or "").ljust(3, "0")[:3])
    return OffsetReset(strategy, (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis)


class _OffsetResetSetting(Setting[str]):
    def _check(self, text: str, value: str) -> None:
        try:
            parse_offset_reset(value)
        except ValueError:
            why = (
                f"Invalid value `{value}` for configuration {self.name}. The value must be either 'earliest', 'latest' "
                "or of the format 'by_duration:<PnDTnHnMn.nS>'."
            )
            raise self.refuse(text, why) from None


class GroupConfig(SettingsTable):
    """A group's settings: its own where given, else the broker's `group.` setting.

    The group's own values are clamped to the broker's bounds, which may have been narrowed since; `overrides` has the
    given values.

    Attributes:
        overrides: the group's own settings, as texts by name.
        effective: the settings that coordinators use for the group.
        by_node: the same group on nodes that differ from the others.
    """

    share_auto_offset_reset = _OffsetResetSetting(
        "string",
        "latest",
        str,
        "Where a share partition begins: latest, earliest, or by_duration: and an ISO 8601 duration.",
    )
    share_isolation_level = text(
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        doc="Whether records of transactions are delivered before they are committed.",
    )
    share_renew_acknowledge_enable = flag(True, doc="Whether an acquired record's lock may be renewed.")
    errors_deadletterqueue_topic_name = text(
        "", doc="Topic to which records go that are rejected or were delivered too often; empty: they go nowhere."
    )
    errors_deadletterqueue_copy_record_enable = flag(
        False, doc="Whether key and value are copied to that topic, not only headers that say which record it was."
    )

    streams_assignor_name = text("sticky", doc="Accepted for compatibility; there is one assignor of streams groups.")

    streams_rack_aware_assignment_tags: tuple[str, ...]
    overrides: Mapping[str, str]
    effective: Settings

    def __init__(self, overrides: Mapping[str, str], broker: Config, *, is_new: bool = False) -> None:
        """Raises `InvalidSetting` for unknown names and bad values; with `is_new`, also for values beyond the broker's
        bounds.
        """
        self.overrides = dict(overrides)
        self.by_node: dict[int, GroupConfig] = {}
        for name in overrides:
            if self.setting(name) is None:
                raise InvalidSetting(f"Unknown group config name: {name}")
        for setting in self.settings():
            synonym = broker.setting(f"group.{setting.name}")
            if synonym is not None:
                self.__dict__[setting.attribute] = getattr(broker, synonym.attribute)
        self.assign(overrides)
        numbers = {name: one for name in overrides if isinstance(one := getattr(self, _attribute(name)), int)}
        if is_new:
            _check_bounds(numbers, broker)
            self._check_texts(broker)
        self._narrow(numbers, broker)
        own = {f"group_{attribute}": getattr(self, attribute) for attribute in _OF_THE_BROKER}
        self.effective = replace(coordinator_settings(broker), **own)

    @classmethod
    def settings(cls) -> Iterator[Setting[object]]:
        """All settings, in Kafka's order; first those that it describes only if they are given."""
        by_family = sorted(super().settings(), key=lambda one: one.name.partition(".")[0])
        by_name = {one.name: one for one in by_family if one.is_listed}
        yield from (one for one in by_family if not one.is_listed)
        yield from (by_name[name] for name in in_java_order(by_name, len(by_name)))

    @property
    def offset_reset(self) -> OffsetReset:
        """`share.auto.offset.reset`, parsed."""
        return parse_offset_reset(self.share_auto_offset_reset)

    def _check_texts(self, broker: Config) -> None:
        if self.errors_deadletterqueue_topic_name.startswith("__"):
            raise InvalidSetting("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")
        tags = self.streams_rack_aware_assignment_tags
        if len(set(tags)) != len(tags):
            raise InvalidSetting("streams.rack.aware.assignment.tags must not contain duplicate tag keys.")
        assignor, known = self.streams_assignor_name, broker.group_streams_assignors
        if assignor not in known:
            raise InvalidSetting(
                f"streams.assignor.name '{assignor}' is not a registered task assignor. "
                f"Registered assignors are: [{', '.join(known)}]."
            )

    def _narrow(self, given: Mapping[str, int], broker: Config) -> None:
        narrowed = dict(given)
        for name, low, high, _ in _bounds(broker):
            if name in given:
                narrowed[name] = min(max(given[name], low), high)
                self.__dict__[_attribute(name)] = narrowed[name]
        for family in FAMILIES:
            if not _outlasts_heartbeat(family, narrowed, broker):
                for name in _RELATED:
                    self.__dict__[_attribute(f"{family}.{name}")] = _of_broker(broker, f"group.{family}.{name}")


for _family in FAMILIES:
    GroupConfig.declare(f"{_family}_assignor_offload_enable", offloading())
_OF_THE_BROKER = []
for _field, _declaration, _declared in declarations():
    if _declaration.is_of_group:
        _declared.high = None  # another setting of the broker is the upper bound
        _OF_THE_BROKER.append(_field.removeprefix("group_"))
        GroupConfig.declare(_OF_THE_BROKER[-1], _declared)


def _check_bounds(given: Mapping[str, int], broker: Config) -> None:
    """Raises `InvalidSetting`."""
    for name, low, high, inside in _bounds(broker):
        if name in given and not low <= given[name] <= high:
            raise InvalidSetting(f"{name} must be {inside}")
    for family in FAMILIES:
        if not _outlasts_heartbeat(family, given, broker):
            raise InvalidSetting(f"{family}.session.timeout.ms must be greater than {family}.heartbeat.interval.ms")


def _outlasts_heartbeat(family: str, given: Mapping[str, int], broker: Config) -> bool:
    session_ms, heartbeat_ms = (
        given.get(f"{family}.{name}", _of_broker(broker, f"group.{family}.{name}")) for name in _RELATED
    )
    return session_ms > heartbeat_ms


def _bounds(broker: Config) -> Iterator[tuple[str, int, int, str]]:
    """The settings of a group that are bounded, with their lower and upper bound, and both in Kafka's words."""
    for family, name in BOUNDED:
        low, high = (_of_broker(broker, f"group.{family}.{bound}.{name}") for bound in ("min", "max"))
        yield f"{family}.{name}", low, high, f"in the range {low} to {high} inclusive."
    for kind in ("standby", "warmup"):
        high = _of_broker(broker, f"group.streams.max.{kind}.replicas")
        yield f"streams.num.{kind}.replicas", 0, high, f"less than or equal to {high}"
    low = broker.group_streams_min_task_offset_interval_ms
    yield "streams.task.offset.interval.ms", low, INT_MAX, f"greater than or equal to {low}"


def _of_broker(broker: Config, name: str) -> int:
    value: int = getattr(broker, _attribute(name))
    return value


def _attribute(name: str) -> str:
    return name.replace(".", "_")


class GroupConfigs(StoredSettings[GroupConfig]):
    """The settings that single groups have of their own, by group id. A group may have settings before it exists."""

    def __init__(self, directory: StorageDirectory, broker: Config) -> None:
        self._broker = broker
        super().__init__(directory, "groups", "group settings", "group", lambda given: GroupConfig(given, broker))

    def at(self, group_id: str, node: int) -> GroupConfig:
        """The settings of a group on a node, in force now."""
        found = self.of(group_id)
        if not self._broker.has_own(node):
            return found
        if node not in found.by_node:
            found.by_node[node] = GroupConfig(found.overrides, self._broker.of(node))
        return found.by_node[node]

    def effective_by_group(self, node: int) -> Mapping[str, Settings]:
        """The settings that a node's coordinators use, by group id, for the groups that have settings of their own."""
        return {group_id: self.at(group_id, node).effective for group_id in self._by_name}

    def check(self, overrides: Mapping[str, str]) -> GroupConfig:
        return GroupConfig(overrides, self._broker, is_new=True)

    def take_defaults(self) -> None:
        """To be called when the broker's settings changed: applies the new defaults and bounds to the groups."""
        self._plain = self._make({})
        self._by_name = {group_id: self._make(config.overrides) for group_id, config in self._by_name.items()}
