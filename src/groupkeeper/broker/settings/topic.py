"""The settings that a topic can have of its own (Kafka 4.4.0 LogConfig), and where their defaults come from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.table import ACCEPTED, Setting, SettingsTable, flag, long, names
from groupkeeper.java_numbers import LONG_MAX

_OWN_LEVEL = f"{ACCEPTED}; the level cannot be set."
_NO_REMOTE = f"{ACCEPTED}; there is no remote storage."
_OF_SYSTEM = f"{ACCEPTED}; the operating system writes back."


class TopicConfig(SettingsTable):
    """A topic's settings as typed attributes: its own where given, else the broker's.

    Attributes:
        overrides: the topic's own settings, as texts by name.
    """

    # In the order in which Kafka describes them.
    internal_segment_bytes = Setting[int | None](
        "int", None, int, "Instead of `segment.bytes`, and without its lower bound; for tests.", low=1
    )
    compression_type = Config.compression_type.for_topics(f"{ACCEPTED}; batches are stored as they came.")
    errors_deadletterqueue_group_enable = flag(
        False, doc="Whether share groups may use the topic as their dead-letter queue."
    )
    remote_copy_lag_bytes = Config.log_remote_copy_lag_bytes.for_topics(_NO_REMOTE)
    remote_log_delete_on_disable = flag(False, doc=_NO_REMOTE)
    leader_replication_throttled_replicas = names((), doc=f"{ACCEPTED}.")
    remote_storage_enable = flag(False, doc=_NO_REMOTE)
    min_insync_replicas = Config.min_insync_replicas.for_topics(
        "With fewer replicas in sync, records with acks=all are refused; a lone replica satisfies any value."
    )
    segment_jitter_ms = long(0, low=0, doc="Random part of `segment.ms`.").default_of("log.roll.jitter.ms")
    remote_log_copy_disable = flag(False, doc=_NO_REMOTE)
    local_retention_ms = Config.log_local_retention_ms.for_topics(_NO_REMOTE)
    cleanup_policy = Config.log_cleanup_policy.for_topics("Delete old segments, compact by key, or both.")
    flush_ms = long(LONG_MAX, low=0, doc=_OF_SYSTEM).default_of("log.flush.interval.ms")
    follower_replication_throttled_replicas = names(
        (), doc="Replicas (`PARTITION:NODE`, `*`) added at `follower.replication.throttled.rate` of their node."
    )
    compression_lz4_level = Config.compression_lz4_level.for_topics(_OWN_LEVEL)
    segment_bytes = Config.log_segment_bytes.for_topics("Size at which a new segment file is begun.")
    retention_ms = long(
        604800000, low=-1, doc="How long records are kept, in milliseconds; −1 is no limit."
    ).default_of("log.retention.ms")
    compression_gzip_level = Config.compression_gzip_level.for_topics(_OWN_LEVEL)
    remote_copy_lag_ms = Config.log_remote_copy_lag_ms.for_topics(_NO_REMOTE)
    flush_messages = Config.log_flush_interval_messages.for_topics(_OF_SYSTEM)
    compression_zstd_level = Config.compression_zstd_level.for_topics(_OWN_LEVEL)
    max_compaction_lag_ms = Config.log_cleaner_max_compaction_lag_ms.for_topics(
        "Longest time a record stays uncompacted."
    )
    file_delete_delay_ms = Config.log_segment_delete_delay_ms.for_topics("Wait before a segment's files are removed.")
    max_message_bytes = Config.message_max_bytes.for_topics("Largest record batch.")
    min_compaction_lag_ms = Config.log_cleaner_min_compaction_lag_ms.for_topics(
        "Shortest time a record stays uncompacted."
    )
    message_timestamp_type = Config.log_message_timestamp_type.for_topics("Whose clock gives the records' timestamps.")
    local_retention_bytes = Config.log_local_retention_bytes.for_topics(_NO_REMOTE)
    preallocate = Config.log_preallocate.for_topics(f"{ACCEPTED}.")
    index_interval_bytes = Config.log_index_interval_bytes.for_topics("Bytes of log between two index entries.")
    min_cleanable_dirty_ratio = Config.log_cleaner_min_cleanable_ratio.for_topics(
        "Share of uncompacted bytes that starts a compaction."
    )
    unclean_leader_election_enable = Config.unclean_leader_election_enable.for_topics(
        "Whether a replica that is not in sync may lead when no other runs."
    )
    retention_bytes = Config.log_retention_bytes.for_topics("Bytes of a partition that are kept; −1 is no limit.")
    delete_retention_ms = Config.log_cleaner_delete_retention_ms.for_topics("How long compaction keeps tombstones.")
    message_timestamp_after_max_ms = Config.log_message_timestamp_after_max_ms.for_topics(
        "How far in the future a record's timestamp may be."
    )
    max_decompressed_message_bytes = Config.max_decompressed_message_bytes.for_topics(
        f"{ACCEPTED}; whole batches are bounded."
    )
    message_timestamp_before_max_ms = Config.log_message_timestamp_before_max_ms.for_topics(
        "How far in the past a record's timestamp may be."
    )
    segment_ms = long(604800000, low=1, doc="Age at which a new segment file is begun.").default_of("log.roll.ms")
    segment_index_bytes = Config.log_index_size_max_bytes.for_topics(f"{ACCEPTED}; the index grows as needed.")

    overrides: Mapping[str, str]

    def __init__(self, overrides: Mapping[str, str], broker: Config) -> None:
        """Raises `InvalidSetting` for unknown names and bad values."""
        self.overrides = dict(overrides)
        self.__dict__.update(_defaults_of(broker))
        for name in overrides:
            if self.setting(name) is None:
                raise InvalidSetting(f"Unknown topic config name: {name}")
        self.assign(overrides)

    @cached_property
    def roll_bytes(self) -> int:
        """Size at which a new segment file is begun."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @cached_property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @cached_property
    def longest_segment_ms(self) -> int:
        """Age at which a new segment file is begun, in milliseconds: `segment.ms`, or `max.compaction.lag.ms` if the
        topic is compacted and this is less.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms


def segment_size(size: int) -> dict[str, str]:
    """The setting that gives a topic segments of `size` bytes; below the bound of `segment.bytes` it is the internal
    one.
    """
    least = TopicConfig.segment_bytes.low
    name = "segment.bytes" if least is None or size >= least else "internal.segment.bytes"
    return {name: str(size)}


SYNONYM_BY_SETTING = {one.name: one.broker_name for one in TopicConfig.settings() if one.broker_name is not None}
"""Topic setting → the broker setting that gives its default (Kafka 4.4.0 ServerTopicConfigSynonyms; the first of
several).
"""


def _defaults_of(broker: Config) -> dict[str, object]:
    defaults: dict[str, object] = {}
    for name, synonym in SYNONYM_BY_SETTING.items():
        value = getattr(broker, synonym.replace(".", "_"))
        if value is not None:
            defaults[name.replace(".", "_")] = value
    defaults["retention_ms"] = broker.retention_ms
    defaults["segment_ms"] = broker.roll_ms
    defaults["segment_jitter_ms"] = broker.roll_jitter_ms
    return defaults
