"""The settings that a topic can have of its own (Kafka 4.4.0 LogConfig), and where their defaults come from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.table import ACCEPTED, Setting, SettingsTable, flag, long, names, real, text, whole
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
    compression_type = text(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        doc="Accepted for compatibility; batches are stored as they came.",
    ).default_of("compression.type")
    errors_deadletterqueue_group_enable = flag(
        False, doc="Whether share groups may use the topic as their dead-letter queue."
    )
    remote_copy_lag_bytes = long(-1, low=-1, doc=_NO_REMOTE).default_of("log.remote.copy.lag.bytes")
    remote_log_delete_on_disable = flag(False, doc=_NO_REMOTE)
    leader_replication_throttled_replicas = names((), doc="Accepted for compatibility.")
    remote_storage_enable = flag(False, doc=_NO_REMOTE)
    min_insync_replicas = whole(
        1,
        low=1,
        doc="With fewer replicas in sync, records with acks=all are refused; a lone replica satisfies any value.",
    ).default_of("min.insync.replicas")
    segment_jitter_ms = long(0, low=0, doc="Random part of `segment.ms`.").default_of("log.roll.jitter.ms")
    remote_log_copy_disable = flag(False, doc=_NO_REMOTE)
    local_retention_ms = long(-2, low=-2, doc=_NO_REMOTE).default_of("log.local.retention.ms")
    cleanup_policy = names(
        ("delete",), choices=("compact", "delete"), doc="Delete old segments, compact by key, or both."
    ).default_of("log.cleanup.policy")
    flush_ms = long(LONG_MAX, low=0, doc=_OF_SYSTEM).default_of("log.flush.interval.ms")
    follower_replication_throttled_replicas = names(
        (), doc="Replicas (`PARTITION:NODE`, `*`) added at `follower.replication.throttled.rate` of their node."
    )
    compression_lz4_level = whole(9, low=1, high=17, doc=_OWN_LEVEL).default_of("compression.lz4.level")
    segment_bytes = whole(1073741824, low=1048576, doc="Size at which a new segment file is begun.").default_of(
        "log.segment.bytes"
    )
    retention_ms = long(
        604800000, low=-1, doc="How long records are kept, in milliseconds; −1 is no limit."
    ).default_of("log.retention.ms")
    compression_gzip_level = whole(-1, low=-1, high=9, doc=_OWN_LEVEL).default_of("compression.gzip.level")
    remote_copy_lag_ms = long(0, low=-1, doc=_NO_REMOTE).default_of("log.remote.copy.lag.ms")
    flush_messages = long(LONG_MAX, low=1, doc=_OF_SYSTEM).default_of("log.flush.interval.messages")
    compression_zstd_level = whole(3, low=-131072, high=22, doc=_OWN_LEVEL).default_of("compression.zstd.level")
    max_compaction_lag_ms = long(LONG_MAX, low=1, doc="Longest time a record stays uncompacted.").default_of(
        "log.cleaner.max.compaction.lag.ms"
    )
    file_delete_delay_ms = long(60000, low=0, doc="Wait before a segment's files are removed.").default_of(
        "log.segment.delete.delay.ms"
    )
    max_message_bytes = whole(1048588, low=0, doc="Largest record batch.").default_of("message.max.bytes")
    min_compaction_lag_ms = long(0, low=0, doc="Shortest time a record stays uncompacted.").default_of(
        "log.cleaner.min.compaction.lag.ms"
    )
    message_timestamp_type = text(
        "CreateTime", choices=("CreateTime", "LogAppendTime"), doc="Whose clock gives the records' timestamps."
    ).default_of("log.message.timestamp.type")
    local_retention_bytes = long(-2, low=-2, doc=_NO_REMOTE).default_of("log.local.retention.bytes")
    preallocate = flag(False, doc="Accepted for compatibility.").default_of("log.preallocate")
    index_interval_bytes = whole(4096, low=0, doc="Bytes of log between two index entries.").default_of(
        "log.index.interval.bytes"
    )
    min_cleanable_dirty_ratio = real(
        0.5, low=0, high=1, doc="Share of uncompacted bytes that starts a compaction."
    ).default_of("log.cleaner.min.cleanable.ratio")
    unclean_leader_election_enable = flag(
        False, doc="Whether a replica that is not in sync may lead when no other runs."
    ).default_of("unclean.leader.election.enable")
    retention_bytes = long(-1, doc="Bytes of a partition that are kept; −1 is no limit.").default_of(
        "log.retention.bytes"
    )
    delete_retention_ms = long(86400000, low=0, doc="How long compaction keeps tombstones.").default_of(
        "log.cleaner.delete.retention.ms"
    )
    message_timestamp_after_max_ms = long(
        3600000, low=0, doc="How far in the future a record's timestamp may be."
    ).default_of("log.message.timestamp.after.max.ms")
    max_decompressed_message_bytes = whole(
        2147483639, low=1, high=2147483639, doc="Accepted for compatibility; whole batches are bounded."
    ).default_of("max.decompressed.message.bytes")
    message_timestamp_before_max_ms = long(
        LONG_MAX, low=0, doc="How far in the past a record's timestamp may be."
    ).default_of("log.message.timestamp.before.max.ms")
    segment_ms = long(604800000, low=1, doc="Age at which a new segment file is begun.").default_of("log.roll.ms")
    segment_index_bytes = whole(
        10485760, low=4, doc="Accepted for compatibility; the index grows as needed."
    ).default_of("log.index.size.max.bytes")

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
