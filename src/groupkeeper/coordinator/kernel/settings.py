"""The settings that the coordinator's decisions depend on, under Kafka's names.

Handlers get those of the group they work on: a group's own `consumer.session.timeout.ms` stands under the name of the
broker's setting, `group_consumer_session_timeout_ms` (`Coordinator.settings_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groupkeeper.coordinator.kernel.soft import SoftChange


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults are Kafka's. All times are milliseconds."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    """Counted in UTF-16 units, despite the name."""
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    new_member_join_timeout_ms: int = 300_000
    """How long the parked JoinGroup of a member without heartbeats is believed in; not configurable in Kafka.
    """

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default."""
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000

    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_max_size: int = 200
    group_share_assignors: tuple[str, ...] = ("simple",)
    group_share_initialize_retry_interval_ms: int = 30_000

    group_streams_session_timeout_ms: int = 45_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_max_size: int = 2_147_483_647
    group_streams_num_standby_replicas: int = 0


@dataclass(frozen=True, slots=True)
class SettingsChange(SoftChange):
    """The groups that have settings of their own, all of them, by id, and those of all others (None: as they were).
    Applied by `Coordinator.apply`.
    """

    settings_by_group: Mapping[str, Settings]
    settings: Settings | None = None
