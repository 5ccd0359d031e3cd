"""The settings of the group, share and offsets coordinators, with their relations (Kafka GroupCoordinatorConfig).

Settings that coordinators use are declared in `groupkeeper.coordinator.kernel.settings`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.table import ANY, FIXED, Setting, SettingsTable, flag, long, names, short, text, whole
from groupkeeper.coordinator.kernel.settings import Declaration, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    class Declared(SettingsTable, Settings):
        """For type checkers: the fields of `Settings` are attributes of the table, too."""
else:
    Declared = SettingsTable

_NO_EFFECT = "Accepted for compatibility; one thread does the work here."
_AT_ONCE = "Accepted for compatibility; records are appended at once."
_OWN_SIZE = "Accepted for compatibility; how much of a log is read at a time cannot be set."


class GroupSettings(Declared):
    """`offsets.*`, `group.*` and `share.coordinator.*`."""

    # --- the offsets topic
    offsets_topic_num_partitions = whole(50, low=1, doc="Partitions of `__consumer_offsets` when it is created.")
    offsets_topic_replication_factor = short(
        3, low=1, doc="Replicas of `__consumer_offsets`; at most one on each node."
    )
    offsets_topic_segment_bytes = whole(104857600, low=1, doc="Segment size of `__consumer_offsets`.")
    offsets_topic_compression_codec = whole(
        0, low=0, high=4, doc="Compression of the offsets topic's records; 0 is none."
    )
    offsets_load_buffer_size = whole(5242880, low=1, doc=_OWN_SIZE)
    offsets_commit_timeout_ms = whole(
        5000, low=1, doc="Of several nodes: how long responses of group coordinators wait for replicas."
    )

    # --- the coordinator
    group_coordinator_rebalance_protocols = names(
        ("classic", "consumer", "streams"),
        choices=("consumer", "classic", "share", "streams"),
        doc="Group protocols that are served (deprecated by Kafka).",
    )
    group_coordinator_threads = whole(4, low=1, doc=_NO_EFFECT)
    group_coordinator_background_threads = whole(2, low=1, doc=_NO_EFFECT)
    group_coordinator_append_linger_ms = whole(-1, low=-1, doc=_AT_ONCE)
    group_coordinator_cached_buffer_max_bytes = whole(1048588, low=524288, doc=_NO_EFFECT).in_kafka(ANY)

    # --- consumer groups (KIP-848)
    group_consumer_min_session_timeout_ms = whole(45000, low=1, doc="Lower bound of the session timeout.")
    group_consumer_max_session_timeout_ms = whole(60000, low=1, doc="Upper bound of the session timeout.")
    group_consumer_min_heartbeat_interval_ms = whole(5000, low=1, doc="Lower bound of the heartbeat interval.")
    group_consumer_max_heartbeat_interval_ms = whole(15000, low=1, doc="Upper bound of the heartbeat interval.")
    group_consumer_min_assignment_interval_ms = whole(0, low=0, doc="Lower bound of the assignment interval.")
    group_consumer_max_assignment_interval_ms = whole(15000, low=0, doc="Upper bound of the assignment interval.")

    # --- share groups (KIP-932)
    group_share_min_session_timeout_ms = whole(45000, low=1, doc="Lower bound of the session timeout.")
    group_share_max_session_timeout_ms = whole(60000, low=1, doc="Upper bound of the session timeout.")
    group_share_min_heartbeat_interval_ms = whole(5000, low=1, doc="Lower bound of the heartbeat interval.")
    group_share_max_heartbeat_interval_ms = whole(15000, low=1, doc="Upper bound of the heartbeat interval.")
    group_share_min_assignment_interval_ms = whole(0, low=0, doc="Lower bound of the assignment interval.")
    group_share_max_assignment_interval_ms = whole(15000, low=0, doc="Upper bound of the assignment interval.")
    group_share_min_record_lock_duration_ms = whole(
        15000, low=1000, high=30000, doc="Lower bound of the lock duration."
    )
    group_share_max_record_lock_duration_ms = whole(
        60000, low=30000, high=3600000, doc="Upper bound of the lock duration."
    )
    group_share_min_delivery_count_limit = whole(2, low=2, high=5, doc="Lower bound of the delivery limit.")
    group_share_max_delivery_count_limit = whole(10, low=5, high=25, doc="Upper bound of the delivery limit.")
    group_share_min_partition_max_record_locks = whole(100, low=100, high=2000, doc="Lower bound of that number.")
    group_share_max_partition_max_record_locks = whole(4000, low=2000, high=10000, doc="Upper bound of that number.")
    group_share_max_share_sessions = whole(2000, low=1, doc="Most share sessions.")
    errors_deadletterqueue_auto_create_topics_enable = flag(
        False, doc="Whether the dead-letter queue of a share group is created when the first record goes there."
    ).in_kafka(ANY)
    errors_deadletterqueue_topic_name_prefix = text(
        "dlq.", doc="How names of dead-letter queues begin; others are refused when a record goes there. Empty: any."
    ).in_kafka(ANY)

    # --- streams groups (KIP-1071)
    group_streams_min_session_timeout_ms = whole(45000, low=1, doc="Lower bound of the session timeout.")
    group_streams_max_session_timeout_ms = whole(60000, low=1, doc="Upper bound of the session timeout.")
    group_streams_min_heartbeat_interval_ms = whole(5000, low=1, doc="Lower bound of the heartbeat interval.")
    group_streams_max_heartbeat_interval_ms = whole(15000, low=1, doc="Upper bound of the heartbeat interval.")
    group_streams_min_assignment_interval_ms = whole(0, low=0, doc="Lower bound of the assignment interval.")
    group_streams_max_assignment_interval_ms = whole(15000, low=0, doc="Upper bound of the assignment interval.")
    group_streams_assignors = names(("sticky",), choices=("sticky",), doc="Accepted for compatibility; there is one.")
    group_streams_max_standby_replicas = whole(2, low=0, doc="Upper bound of the number of standby replicas.")
    group_streams_max_warmup_replicas = whole(20, low=0, doc="Upper bound of warm-up replicas.").in_kafka(
        is_listed=False
    )
    group_streams_min_task_offset_interval_ms = whole(15000, low=1, doc="Lower bound of that interval.").in_kafka(
        is_listed=False
    )

    # --- the share coordinator's state topic
    share_coordinator_state_topic_num_partitions = whole(50, low=1, doc="Partitions of `__share_group_state`.")
    share_coordinator_state_topic_replication_factor = short(
        3, low=1, doc="Replicas of `__share_group_state`; at most one on each node."
    )
    share_coordinator_state_topic_min_isr = short(2, low=1, doc="`min.insync.replicas` of `__share_group_state`.")
    share_coordinator_state_topic_segment_bytes = whole(104857600, low=1, doc="Segment size of `__share_group_state`.")
    share_coordinator_snapshot_update_records_per_snapshot = whole(
        500, low=0, high=500, doc="Update records between two snapshots of a share partition."
    )
    share_coordinator_state_topic_compression_codec = whole(
        0, low=0, high=4, doc="Compression of the records of share state; 0 is none."
    )
    share_coordinator_state_topic_prune_interval_ms = whole(
        300000, low=1, doc="How often records of share state are dropped that later snapshots made redundant."
    ).in_kafka(is_listed=False)
    share_coordinator_cold_partition_snapshot_interval_ms = whole(
        300000, low=1, doc="Age at which share state gets a snapshot without need, so that the log before it can go."
    ).in_kafka(is_listed=False)
    share_coordinator_write_timeout_ms = whole(
        5000, low=1, doc="Of several nodes: how long share coordinators wait for replicas; leaders five times that."
    )
    share_coordinator_threads = whole(1, low=1, doc=_NO_EFFECT)
    share_coordinator_append_linger_ms = whole(-1, low=-1, doc=_AT_ONCE)
    share_coordinator_load_buffer_size = whole(5242880, low=1, doc=_OWN_SIZE)

    unstable_api_versions_enable = flag(False, doc="Serve versions of requests that Kafka calls unstable.").in_kafka(
        is_listed=False
    )
    unstable_feature_versions_enable = flag(False, doc="Offer an unstable metadata.version.").in_kafka(is_listed=False)


def declarations() -> Iterator[tuple[str, Declaration, Setting[object]]]:
    """The settings that `Settings` declares: the field's name, its declaration, and the setting made of it."""
    for one in fields(Settings):
        declaration: Declaration | None = one.metadata.get("declaration")
        if declaration is not None:
            yield one.name, declaration, _setting(one.default, declaration)


def _setting(default: object, declaration: Declaration) -> Setting[object]:
    found: Setting[object]
    match default:
        case int():
            kind = long if declaration.is_long else whole
            value = default // declaration.unit
            found = kind(value, low=declaration.low, high=declaration.high, doc=declaration.doc)  # type: ignore[assignment]
        case tuple():
            found = names(default, doc=declaration.doc)  # type: ignore[assignment]
        case _:
            found = text(str(default), doc=declaration.doc)  # type: ignore[assignment]
    change = ANY if declaration.is_dynamic else FIXED
    return found.in_kafka(
        change,
        type_name=declaration.type_name,
        is_listed=declaration.is_listed,
        has_empty_default=isinstance(default, tuple),
    )


for _field, _declaration, _declared in declarations():
    GroupSettings.declare(_declaration.given_as or _field, _declared)


def coordinator_settings(config: GroupSettings) -> Settings:
    """The broker's configuration in the form that coordinators use. Texts are in lower case, as their case does not
    matter.
    """
    values: dict[str, Any] = {}
    for field, declaration, _ in declarations():
        value = getattr(config, declaration.given_as or field)
        value = value.lower() if isinstance(value, str) else value
        values[field] = value * declaration.unit if declaration.unit != 1 else value
    return Settings(**values)


def offloading() -> Setting[Any]:
    """`assignor.offload.enable`, of brokers and groups."""
    return flag(True, doc=_NO_EFFECT).in_kafka(is_listed=False)


FAMILIES = ("consumer", "share", "streams")
for _family in FAMILIES:
    GroupSettings.declare(f"group_{_family}_assignor_offload_enable", offloading())
_INTERVALS = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_SHARE_LIMITS = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
BOUNDED = (
    *((family, name) for family in FAMILIES for name in _INTERVALS),
    *(("share", name) for name in _SHARE_LIMITS),
)
"""Settings `group.FAMILY.NAME` that lie between `group.FAMILY.min.NAME` and `group.FAMILY.max.NAME`."""
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
_TOPOLOGY_PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"


def check_relations(config: GroupSettings) -> None:
    """Checks relations between settings (Kafka 4.4.0 GroupCoordinatorConfig). Raises `InvalidSetting`, which names the
    keys.
    """
    for family, suffix in BOUNDED:
        low, high, value = (f"group.{family}.{bound}{suffix}" for bound in ("min.", "max.", ""))
        _require(config, high, ">=", low)
        _require(config, value, ">=", low)
        _require(config, value, "<=", high)
    for family in FAMILIES:
        _require(config, f"group.{family}.heartbeat.interval.ms", "<", f"group.{family}.session.timeout.ms")
    _require(config, "group.streams.num.standby.replicas", "<=", "group.streams.max.standby.replicas")
    _require(config, "group.streams.task.offset.interval.ms", ">=", "group.streams.min.task.offset.interval.ms")
    _require(config, "group.streams.num.warmup.replicas", "<=", "group.streams.max.warmup.replicas")
    _require(config, "group.share.max.share.sessions", ">=", "group.share.max.size")
    _check_lists(config)


_WORDS = {">=": "must be greater than or equal to", "<=": "must be less than or equal to", "<": "must be less than"}


def _require(config: GroupSettings, left: str, relation: str, right: str) -> None:
    one: int = getattr(config, left.replace(".", "_"))
    other: int = getattr(config, right.replace(".", "_"))
    if not {">=": one >= other, "<=": one <= other, "<": one < other}[relation]:
        raise InvalidSetting(f"{left} {_WORDS[relation]} {right}")


def _check_lists(config: GroupSettings) -> None:
    assignors = config.group_consumer_assignors
    if not assignors or len(set(assignors)) != len(assignors):
        raise InvalidSetting("group.consumer.assignors must name at least one assignor and none twice")
    if len(config.group_share_assignors) != 1:
        raise InvalidSetting("group.share.assignors must contain exactly one assignor")
    if config.group_consumer_migration_policy.lower() not in _POLICIES:
        raise InvalidSetting(
            f"Invalid value {config.group_consumer_migration_policy} for configuration "
            f"group.consumer.migration.policy: String must be one of: {', '.join(_POLICIES)}"
        )
    if config.group_streams_topology_description_plugin_class not in ("", _TOPOLOGY_PLUGIN):
        raise InvalidSetting(
            f"Invalid value {config.group_streams_topology_description_plugin_class} for configuration "
            f"group.streams.topology.description.plugin.class: the one that there is is {_TOPOLOGY_PLUGIN}"
        )
