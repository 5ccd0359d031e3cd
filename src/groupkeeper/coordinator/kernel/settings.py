"""The settings that the coordinator's decisions depend on, under Kafka's names (`_` for `.`).

Each setting is declared here and nowhere else. The fields of `Settings` are the source for the broker's table of
settings, its documentation, DescribeConfigs, the settings of single groups, and the settings that handlers get.
Handlers get the settings of the group they work on: a group's own `consumer.session.timeout.ms` is stored under the
name of the broker's setting, `group_consumer_session_timeout_ms` (`Coordinator.settings_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupkeeper.coordinator.kernel.soft import SoftChange


class Declaration(NamedTuple):
    """The attributes of a setting besides its name and default."""

    doc: str
    """One sentence for people."""
    low: int | None = None
    """Inclusive bound of a number, in the unit that users give; None, here and of `high`: unbounded."""
    high: int | None = None
    """None: unbounded."""
    is_of_group: bool = False
    """Whether a group may have its own value, under the name without `group.`."""
    is_dynamic: bool = False
    """Whether it may change while a broker runs."""
    is_listed: bool = True
    """Whether Kafka describes it when it is not requested by name."""
    is_long: bool = False
    """Whether Kafka calls its type `long` and not `int`."""
    type_name: str | None = None
    """Kafka's type of a text; None: `string`."""
    given_as: str | None = None
    """The name of the setting that users give, if it has another unit; None: the field's name."""
    unit: int = 1
    """How many of the field's units one unit of the given setting is."""


def setting(default: object, doc: str, **rest: Any) -> Any:
    """A field of `Settings` with its `Declaration`."""
    return field(default=default, metadata={"declaration": Declaration(doc, **rest)})


_MANY = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults are Kafka's. All times are milliseconds."""

    group_min_session_timeout_ms: int = setting(6_000, "Smallest session timeout a classic member may request.")
    group_max_session_timeout_ms: int = setting(1_800_000, "Largest session timeout a classic member may request.")
    group_initial_rebalance_delay_ms: int = setting(
        3_000, "How long the first rebalance of an empty group waits for members."
    )
    group_max_size: int = setting(_MANY, "Most members of a classic group.", low=1)
    offset_metadata_max_bytes: int = setting(
        4_096, "Longest metadata text of a committed offset, in UTF-16 units; longer ones are refused."
    )
    offsets_retention_ms: int = setting(
        10_080 * 60_000,
        "How long offsets outlive their group's last activity.",
        low=1,
        given_as="offsets_retention_minutes",
        unit=60_000,
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, "Interval between checks for expired offsets.", low=1, is_long=True
    )
    new_member_join_timeout_ms: int = 300_000
    """Session timeout of a new member while its JoinGroup is parked; not configurable in Kafka."""

    group_consumer_session_timeout_ms: int = setting(
        45_000, "Session timeout of consumer group members.", low=1, is_of_group=True
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        5_000, "Heartbeat interval given to consumer group members.", low=1, is_of_group=True
    )
    group_consumer_assignment_interval_ms: int = setting(
        1_000, "Least time between two assignments of a consumer group.", low=0, is_of_group=True, is_dynamic=True
    )
    group_consumer_max_size: int = setting(_MANY, "Most members of a consumer group.", low=1)
    group_consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"), "Server-side assignors; the first is the default."
    )
    group_consumer_migration_policy: str = setting(
        "bidirectional", "Online migration of groups: bidirectional, upgrade, downgrade or disabled."
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        600_000, "How often subscribed patterns are resolved.", low=10_000, is_listed=False
    )

    group_share_session_timeout_ms: int = setting(
        45_000, "Session timeout of share group members.", low=1, is_of_group=True
    )
    group_share_heartbeat_interval_ms: int = setting(
        5_000, "Heartbeat interval given to share group members.", low=1, is_of_group=True
    )
    group_share_assignment_interval_ms: int = setting(
        1_000, "Least time between two assignments of a share group.", low=0, is_of_group=True, is_dynamic=True
    )
    group_share_max_size: int = setting(200, "Most members of a share group.", low=1, high=1_000)
    group_share_assignors: tuple[str, ...] = setting(("simple",), "The assignor of share groups: exactly one.")
    group_share_initialize_retry_interval_ms: int = setting(
        30_000, "Wait before share state is initialized again.", low=1, is_listed=False
    )
    group_share_record_lock_duration_ms: int = setting(
        30_000, "How long a record stays acquired.", low=1_000, high=3_600_000, is_of_group=True
    )
    group_share_delivery_count_limit: int = setting(
        5, "How often a record is delivered at most.", low=2, high=10, is_of_group=True
    )
    group_share_partition_max_record_locks: int = setting(
        2_000, "Most acquired records of a partition.", low=100, high=10_000, is_of_group=True
    )

    group_streams_session_timeout_ms: int = setting(
        45_000, "Session timeout of streams group members.", low=1, is_of_group=True
    )
    group_streams_heartbeat_interval_ms: int = setting(
        5_000, "Heartbeat interval given to streams group members.", low=1, is_of_group=True
    )
    group_streams_assignment_interval_ms: int = setting(
        1_000, "Least time between two assignments of a streams group.", low=0, is_of_group=True, is_dynamic=True
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        3_000, "How long the first assignment of a streams group waits for members.", low=0, is_of_group=True
    )
    group_streams_max_size: int = setting(_MANY, "Most members of a streams group.", low=1)
    group_streams_num_standby_replicas: int = setting(0, "Standby replicas of each task.", low=0, is_of_group=True)
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = setting(
        (),
        "Tags that each client must have: a member without one gets a status that says so. As in Kafka, they do not "
        "change where tasks are placed.",
        is_of_group=True,
    )
    group_streams_num_warmup_replicas: int = setting(
        2, "Accepted for compatibility; there are no warm-up tasks.", low=0, is_of_group=True, is_listed=False
    )
    group_streams_task_offset_interval_ms: int = setting(
        60_000, "Told to streams members: how often to send offsets.", low=1, is_of_group=True, is_listed=False
    )
    group_streams_acceptable_recovery_lag: int = setting(
        10_000,
        "Told to streams members: how far behind a task may be.",
        low=0,
        is_of_group=True,
        is_listed=False,
        is_long=True,
    )
    group_streams_topology_description_plugin_class: str = setting(
        "",
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin: descriptions of topologies are kept while "
        "the broker runs; empty: none.",
        type_name="class",
    )


@dataclass(frozen=True, slots=True)
class SettingsChange(SoftChange):
    """All groups that have settings of their own, by id, and the settings of all other groups (None: unchanged).
    Applied by `Coordinator.apply`.
    """

    settings_by_group: Mapping[str, Settings]
    settings: Settings | None = None
